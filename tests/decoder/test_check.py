import subprocess
import sys

import pytest
import torch
from click.testing import CliRunner

from decoder import check
from decoder.__main__ import main


def test_the_command_runs_every_check_and_prints_the_count():
    run = subprocess.run([sys.executable, "-m", "decoder", "check"], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert lines[:-2] == [f"ok      {name}" for name in check.CHECKS]
    assert lines[-2:] == ["18 of 18 checks hold.", "100,092,672 parameters in the default design"]


def test_a_failed_check_is_named_and_the_others_still_run(monkeypatch, capsys):
    def broken():
        raise KeyError("nothing there")

    monkeypatch.setitem(check.CHECKS, "tying", broken)
    monkeypatch.setitem(check.CHECKS, "start", lambda: check.require(False, "the sky is green"))
    assert check.self_check() == 1
    printed = capsys.readouterr().out
    assert "FAILED  tying: KeyError: 'nothing there'\nFAILED  start: the sky is green\n" in printed
    assert "16 of 18 checks hold.\n" in printed


def test_what_is_not_a_number_is_not_close():
    with pytest.raises(check.CheckFailed, match="off by nan"):
        check.require_close(torch.tensor(torch.nan), torch.tensor(0.0), "nothing")


def test_help_needs_no_torch():
    program = "import sys; from decoder.__main__ import main; main(['--help'], standalone_mode=False); "
    program += "assert 'torch' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "check" in run.stdout


def test_onefile_writes_where_it_is_told(tmp_path):
    path = tmp_path / "one.py"
    result = CliRunner().invoke(main, ["onefile", str(path)])
    assert (result.exit_code, result.output) == (0, "")
    assert path.read_text(encoding="utf-8").startswith('"""A decoder with every design choice')

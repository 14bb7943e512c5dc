"""What the site's tools read is made from Python, the same each time, and nothing unnamed slips in."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from decoder import site_assets
from decoder.config import Config, Experts
from decoder.config_keys import Family, Windows, whole
from decoder.families import RELEASED
from decoder.site_assets import chosen, command, javascript

NODE = shutil.which("node")


def test_files_are_written_once_and_touched_only_if_they_change(tmp_path):
    folder = tmp_path / "generated"
    names = [
        "formulas.js", "tables.js", "models.js", "atlas.json", "atlas.csv", "architecture.py", "favicon.svg",
        "touch-icon.png", "card.png",
    ]  # fmt: skip
    assert site_assets.write(folder) == names
    assert site_assets.write(folder) == []
    (folder / "tables.js").write_text("stale")
    assert site_assets.write(folder) == ["tables.js"]


def test_another_process_writes_the_same_bytes(tmp_path):
    done = CliRunner().invoke(command, [str(tmp_path / "one")])
    assert done.output.endswith("9 of 9 files written\n")
    subprocess.run([sys.executable, "-m", "decoder", "assets", str(tmp_path / "two")], check=True, capture_output=True)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_values_keep_their_kind_in_javascript():
    assert javascript({"a": [1, 1.0, None, True], "b": "</x>\n"}) == '{"a": [1n, 1.0, null, true], "b": "</x>\\n"}'
    with pytest.raises(ValueError, match=r"no JavaScript form for set \{1\}"):
        javascript({1})


def test_what_follows_from_other_fields_is_left_out():
    assert chosen(Config()) == {}
    assert chosen(Config(width=512, heads=8, window=16)) == {"width": 512, "heads": 8, "window": 16}
    assert chosen(Config(head_width=32))["head_width"] == 32
    assert chosen(Config(experts=Experts(8, 2, 96, shared=1)))["experts"] == {
        "count": 8, "per_token": 2, "hidden": 96, "shared": 1,
    }  # fmt: skip


def test_code_without_a_name_is_refused(monkeypatch):
    def unnamed(layer, file):
        return True

    unnamed.__qualname__, unnamed.__module__ = "<lambda>", site_assets.model_types.__name__
    family = Family({}, windows=Windows(whole("sliding_window"), slides=unnamed))
    monkeypatch.setitem(site_assets.model_types.FAMILIES, "new", family)
    with pytest.raises(ValueError, match="needs a name, so that the browser can have it too"):
        site_assets.site_assets()


@pytest.mark.skipif(NODE is None, reason="no node on this machine: the modules were not parsed by it")
def test_the_modules_load(tmp_path):
    site_assets.write(tmp_path)
    script = (
        "for (const n of ['formulas', 'tables', 'models']) console.log(Object.keys(await import(`./${n}.js`)).length)"
    )
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    done = subprocess.run([NODE, "--input-type=module", "-e", script], cwd=tmp_path, capture_output=True, text=True)
    assert [int(line) > 0 for line in done.stdout.split()] == [True] * 3, done.stderr


def test_every_released_model_is_a_preset():
    names = [model["name"] for model in site_assets.models()]
    assert names[: len(RELEASED)] == [row.name for row in RELEASED]


def test_the_page_s_folder_is_where_it_is_written():
    assert (Path(__file__).parents[2] / ".gitignore").read_text().count("/docs/assets/generated/\n") == 1

import os
from pathlib import Path

import pytest

from claims import whole_file


def test_a_new_file_has_the_mode_of_any_other(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    whole_file.write(tmp_path / "new", b"\x00\r\n")
    assert (tmp_path / "new").read_bytes() == b"\x00\r\n"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_mode_stays_and_a_link_stays_a_link(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to("file")
    whole_file.write(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new" and file.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@pytest.mark.parametrize("owner, step", [(Path, "write_bytes"), (os, "replace"), (whole_file.shutil, "copymode")])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device", "elsewhere"), KeyboardInterrupt()])
def test_what_fails_or_is_stopped_changes_nothing(tmp_path, monkeypatch, owner, step, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def stop(*_):
        raise error

    monkeypatch.setattr(owner, step, stop)
    with pytest.raises(type(error)) as raised:
        whole_file.write(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]
    if isinstance(error, OSError):
        assert str(raised.value) == f"[Errno 28] No space left on device: '{path}'"

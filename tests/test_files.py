"""Tests of `utils.files`."""

import pytest

from utils.files import write_atomically


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    write_atomically(path, b"old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("utils.files.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]
    with pytest.raises(FileNotFoundError, match="missing'$"):  # the folder, no .part
        write_atomically(tmp_path / "missing" / "model.pt", b"")
    monkeypatch.setattr("utils.files.open", fail, raising=False)
    with pytest.raises(IsADirectoryError, match="expected a file, got the folder"):
        write_atomically("", b"")

"""Tests of `utils.files`."""

import os
import shutil

import pytest

from utils.files import DATA, read_data, remove_parts, write_atomically


def test_damaged_data_file_is_named_with_both_hashes(tmp_path):
    shutil.copy(DATA / "r50k_base.tiktoken", tmp_path)
    with open(tmp_path / "r50k_base.tiktoken", "ab") as file:
        file.write(b"!")
    with pytest.raises(ValueError, match=r"SHA-256 306cd27f\w{56}, got (?!306c)\w{64}"):
        read_data("r50k_base.tiktoken", tmp_path)


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


def test_parts_of_a_killed_write_can_be_removed(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    monkeypatch.setattr("utils.files.os.replace", lambda part, path: None)  # killed
    write_atomically(path, b"new")
    other_file = tmp_path / "other.pt"
    other_file.touch()
    assert len(list(tmp_path.iterdir())) == 2
    remove_parts(path)
    assert list(tmp_path.iterdir()) == [other_file]


@pytest.mark.skipif(os.name != "posix", reason="needs links and modes")
def test_link_stays_a_link_and_file_keeps_its_mode(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640

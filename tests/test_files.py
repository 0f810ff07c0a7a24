"""Each test pins one sentence about `utils.files`."""

import os
import shutil

import pytest

from utils.files import DATA, read_data, write_atomically


def test_a_missing_data_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="r50k_base.tiktoken"):
        read_data("r50k_base.tiktoken", tmp_path)


def test_a_damaged_data_file_is_named_with_both_hashes(tmp_path):
    shutil.copy(DATA / "r50k_base.tiktoken", tmp_path)
    with open(tmp_path / "r50k_base.tiktoken", "ab") as file:
        file.write(b"!")
    with pytest.raises(ValueError, match=r"SHA-256 306cd27f\w{56}, got (?!306c)\w{64}"):
        read_data("r50k_base.tiktoken", tmp_path)


def test_an_unknown_data_file_is_named():
    with pytest.raises(ValueError, match="got 'novel.txt'"):
        read_data("novel.txt")


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    write_atomically(path, b"old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("utils.files.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]


@pytest.mark.skipif(os.name != "posix", reason="needs links and modes")
def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640

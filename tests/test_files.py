"""Tests of `utils.files`."""

import os
from concurrent.futures import ThreadPoolExecutor

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


@pytest.mark.skipif(os.name != "posix", reason="needs links and modes")
def test_link_stays_a_link_and_file_keeps_its_mode(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_of_two_writers_each_leaves_a_whole_file(tmp_path):
    path, contents = tmp_path / "file", [b"a" * 100_000, b"b" * 70_000]
    write_atomically(path, contents[0])

    def write(content):
        for _ in range(30):
            write_atomically(path, content)
            assert path.read_bytes() in contents

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, contents))
    assert [file.name for file in tmp_path.iterdir()] == ["file"]

"""Files: those of `data/`, checked against their hashes, and writing without loss."""

import contextlib
import errno
import glob
import hashlib
import os
import secrets
import shutil
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"

SHA256 = {
    "r50k_base.tiktoken": (
        "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"
    ),
    "story.txt": "2b29532df90b4073fb548879593af101dc3ec86533260f46d67ca1001fb12faa",
}


def read_data(name, folder=DATA):
    """Read a file of `data/` and make sure that it is whole.

    returns: bytes

    Raises FileNotFoundError where the file is missing, and ValueError for an unknown
    name or where its SHA-256 is not the one noted in `data/README.md`.

    >>> len(read_data("r50k_base.tiktoken"))
    835554
    """
    if name not in SHA256:
        raise ValueError(f"expected one of {sorted(SHA256)}, got {name!r}")
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(
            f"expected the data file {path}; fetch the course again to restore it"
        )
    content = path.read_bytes()
    received = hashlib.sha256(content).hexdigest()
    if received != SHA256[name]:
        raise ValueError(
            f"{path} is damaged: expected SHA-256 {SHA256[name]}, got {received} "
            f"({len(content):,} bytes); fetch the course again to restore it"
        )
    return content


def write_atomically(path, content):
    """Put bytes into a file so that it is never half-written, whatever happens.

    They go into a new file beside it, are synced to the disk, and the new file then
    takes the place of the old one in one step. A link stays a link.

    Raises OSError where the folder cannot be written to; the old file is kept.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new.txt"
    >>> write_atomically(path, b"whole")
    >>> path.read_bytes()
    b'whole'
    """
    path = Path(path).resolve()
    if not path.parent.is_dir():
        reason = os.strerror(errno.ENOENT)
        raise FileNotFoundError(errno.ENOENT, reason, str(path.parent))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, beside)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder):
    # The new name is safe from a power cut once the folder is synced; some systems
    # cannot do that, and then the file is whole all the same.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_parts(path):
    """Delete what a killed `write_atomically` may have left beside a file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new.txt"
    >>> path.with_name(".new.txt.0a1b2c3d.part").touch()
    >>> remove_parts(path)
    >>> list(path.parent.iterdir())
    []
    """
    path = Path(path).resolve()
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)

"""Read the files of `data/`, checked against their hashes, and write files safely."""

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


def read_data(name: str, folder: str | Path = DATA) -> bytes:
    """Read a file of `data/`, if it is complete.

    Raises FileNotFoundError if the file is missing, and ValueError if the name is
    unknown or the file's SHA-256 isn't the one in `data/README.md`.

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


def write_atomically(path: str | Path, content: bytes):
    """Write a file so that it's never half-written, even after a power cut.

    The bytes are written to a new file in the same folder, which then replaces the old
    one in a single step. A link stays a link, and the old file's mode is kept.

    Raises OSError if the folder is missing or not writable; an old file then stays.

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
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def remove_parts(path: str | Path):
    """Delete the unfinished files that a killed `write_atomically` may have left."""
    path = Path(path).resolve()
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        part.unlink(missing_ok=True)

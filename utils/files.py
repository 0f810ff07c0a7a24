"""Files: those of `data/`, checked against their hashes, and writing without loss."""

import hashlib
import os
import tempfile
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

    They go into a new file beside it, which then takes its place in one step.

    Raises OSError where the folder cannot be written to; the old file is kept.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new.txt"
    >>> write_atomically(path, b"whole")
    >>> path.read_bytes()
    b'whole'
    """
    path = Path(path)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise

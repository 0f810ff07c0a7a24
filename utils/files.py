"""The folder of data, and how to write a file safely."""

import os
import secrets
import shutil
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"


def write_atomically(path: str | Path, content: bytes):
    """Write a file so that it's never half-written, even after a power cut.

    The bytes are written to a new file `.NAME.….part` in the same folder, which then
    replaces the old one in a single step, so of several writers the last one wins. A
    link stays a link, and the old file's mode is kept.

    Raises OSError if the folder is missing or not writable; an old file then stays.
    """
    path = Path(path).resolve()
    path.parent.stat()  # an error names the folder that is missing, not a new file
    if path.is_dir():
        raise IsADirectoryError(f"expected a file, got the folder {path}")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

UNFINISHED = ".tmp"  # the ending of a file that is being written, and of one that a killed process left


def write(path: Path, data: bytes) -> None:
    """Write beside a file, then take its place: it holds what it held, or all of ``data``. A link stays a link.

    Raises OSError, naming the file, where that cannot be done, and leaves everything as it was.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        beside.write_bytes(data)
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise

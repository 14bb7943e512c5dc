"""A site is whole or not there: a build writes beside its target and takes the target's place when it is done.

A build that fails or is killed leaves the last whole site where it was, but for the instant between the two renames of
``finish``. Builds that run at once do not meet: the last to finish is the one that stays.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ABANDONED = 3600.0  # seconds after which what a killed build left is removed


def begin(target: Path) -> Path:
    """A new folder beside ``target``, on the same file system, to build the site in."""
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f"{target.name}-unfinished-"
    for left in target.parent.glob(f"{prefix}*"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
    site = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent)) / target.name
    site.mkdir()
    return site


def finish(site: Path, target: Path) -> None:
    """Put what ``begin`` gave, now whole, in the place of ``target``."""
    while True:
        replaced = Path(tempfile.mkdtemp(dir=site.parent)) / target.name
        with suppress(FileNotFoundError):
            target.rename(replaced)
        try:
            site.rename(target)
        except OSError:
            if not target.exists():
                with suppress(OSError):
                    replaced.rename(target)
                raise
        else:  # otherwise another build has just finished
            break
    give_up(site)


def give_up(site: Path) -> None:
    """Remove all that ``begin`` and ``finish`` made beside the target."""
    shutil.rmtree(site.parent, ignore_errors=True)

"""The drift drill: seeded single changes in a copy of the book, each of which a gate must notice and place.

    python tests/drill/drill.py                       fifty changes
    python tests/drill/drill.py --changes 5 --seed 3  fewer, others
    python tests/drill/drill.py --only 12 31          two of them, to look into them

After each change the pages that it touches are checked. What they let pass goes to the self-check of the decoder or,
where a page links to something, to MkDocs. A change that all let pass must be right by a rule of `reasons`, or it is a
fault of the book or of its checker, and the drill fails.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from book import Book
from changes import changes
from reasons import afterwards, beforehand


def drill(number: int, seed: int, only: Collection[int] = ()) -> Counter[str]:
    """Make and judge ``number`` changes, print a row for each, and count the verdicts."""
    verdicts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="drill-") as folder:
        book = Book(Path(folder))
        with book.runner:
            for index, change in enumerate(islice(changes(book.project, seed), number), 1):
                if only and index not in only:
                    continue
                why, (seen, moved) = beforehand(change), ("", [])
                if not why:
                    seen, moved = book.noticed(change)
                if not why and not seen:
                    why = afterwards(book, change, moved)
                verdict = "noticed" if seen else "right" if why else "UNNOTICED"
                verdicts[verdict] += 1
                print(f"{index:>3} {change.kind:<8} {verdict:<10} {change}", flush=True)
                print(f"{'':<23} {seen or why or 'no gate notices it and no rule explains it'}", flush=True)
    print(f"seed {seed}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--changes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", default=(), help="the numbers of some changes of the run")
    given = parser.parse_args()
    return 1 if drill(given.changes, given.seed, given.only)["UNNOTICED"] else 0


if __name__ == "__main__":
    raise SystemExit(main())

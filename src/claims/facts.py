"""Numbers that come from elsewhere: recorded facts and the bibliography.

``facts.toml`` holds one table a fact, under the BibTeX key of its source::

    [narang2021.swiglu_loss]
    value = 1.789
    unit = "nats a token"
    where = "Table 1, row SwiGLU"
    note = "final pre-training loss"
    unverified = "quoted from the abstract; the table was not opened"    # only where true

The bibliography is BibTeX, read by pybtex.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pybtex.database import BibliographyData, Entry, parse_string
from pybtex.exceptions import PybtexError

from claims.agree import show
from claims.literal import LiteralError, read
from claims.results import Value

KEYS = frozenset({"value", "unit", "where", "note", "unverified"})


@dataclass(frozen=True)
class Fact:
    """One recorded number, or words, with its place in the source."""

    key: str  # "narang2021.swiglu_loss"
    source: str  # the BibTeX key
    value: Value
    unit: str
    where: str
    note: str
    unverified: str
    line: int


@dataclass(frozen=True)
class Trouble:
    """Something wrong in the facts file or the bibliography."""

    path: str
    line: int
    slug: str
    message: str


@dataclass
class Facts:
    """All facts by key, all references by BibTeX key, and what is wrong with either."""

    path: str = ""
    bibliography_path: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)
    references: dict[str, Entry] = field(default_factory=dict)
    reference_lines: dict[str, int] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    raw: tuple[bytes, bytes] = (b"", b"")  # the two files as they were read


def load(root: Path, facts: str, bibliography: str, last: Facts | None = None) -> Facts:
    """Read both files; a missing one is empty, a broken one is a trouble with its line.

    ``last`` is what was read before from files of these names; if both are as they were, it is given back.
    """
    raw = _bytes(root / facts), _bytes(root / bibliography)
    if last and last.raw == raw:
        return last
    found = Facts(facts, bibliography, raw=raw)
    _bibliography(found)
    _facts(found)
    return found


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _text(raw: bytes) -> str:
    return raw.decode("utf-8").replace("\r\n", "\n")


def _bibliography(found: Facts) -> None:
    try:
        text = _text(found.raw[1])
        data: BibliographyData = parse_string(text, "bibtex")
    except (PybtexError, UnicodeDecodeError) as error:
        line = getattr(error, "lineno", None) or 1
        found.troubles.append(Trouble(found.bibliography_path, line, "bad-bibliography", " ".join(str(error).split())))
        return
    found.references = dict(data.entries.items())
    for match in re.finditer(r"^[ \t]*@\w+\{\s*([^,\s]+)", text, re.M):
        found.reference_lines[match.group(1)] = text.count("\n", 0, match.start()) + 1


def _facts(found: Facts) -> None:
    try:
        text = _text(found.raw[0])
        tables = tomllib.loads(text, parse_float=Decimal)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        where = re.search(r"line (\d+)", str(error))
        found.troubles.append(Trouble(found.path, int(where[1]) if where else 1, "bad-facts", str(error)))
        return
    for source, entries in tables.items():
        line = _line(text, source)
        if not isinstance(entries, dict):
            found.troubles.append(Trouble(found.path, line, "bad-facts", f"{source} must be a table, [key.fact]"))
            continue
        if source not in found.references:
            message = f"{source} is not in {found.bibliography_path}"
            found.troubles.append(Trouble(found.path, line, "unknown-fact", message))
        for name, entry in entries.items():
            _fact(found, text, source, name, entry)


def _fact(found: Facts, text: str, source: str, name: str, entry: object) -> None:
    key = f"{source}.{name}"
    line = _line(text, key)

    def trouble(slug: str, message: str) -> None:
        found.troubles.append(Trouble(found.path, line, slug, f"{key}: {message}"))

    if not isinstance(entry, dict):
        return trouble("bad-facts", "must be a table with value and where")
    if unknown := set(entry) - KEYS:
        return trouble("bad-facts", f"{', '.join(sorted(unknown))}: unknown; known are {', '.join(sorted(KEYS))}")
    if "value" not in entry:
        return trouble("bad-facts", "value is missing")
    words = {name: entry.get(name, "") for name in KEYS - {"value"}}
    if wrong := [name for name, value in sorted(words.items()) if not isinstance(value, str)]:
        return trouble("bad-facts", f"{', '.join(wrong)} must be a string")
    if not words["where"].strip():
        trouble("fact-without-place", 'where in the source it stands is not said; add where = "Table 1"')
    value = _value(entry["value"])
    if value is None:
        return trouble("bad-facts", f"value must be a number, a string or a list of them, got {entry['value']!r}")
    found.facts[key] = Fact(key, source, value, words["unit"], words["where"], words["note"], words["unverified"], line)


def _value(value: object) -> Value | None:
    if isinstance(value, bool):
        return Value("bool", str(value), (), "yes" if value else "no")
    if isinstance(value, int):
        return Value("int", str(value), (), f"{value:,}")
    if isinstance(value, Decimal):
        return Value("decimal", str(value), (), str(value))
    if isinstance(value, str):
        try:
            literal = read(value)
        except LiteralError:
            literal = None
        if literal is not None and literal.relation == "=" and not literal.words:
            number = literal.value
            shown = value if literal.unit.name else show(number)
            return Value("fraction", f"{number.numerator}/{number.denominator}", (), shown)
        return Value("text", value, (), value)
    if isinstance(value, list):
        items = tuple(item for item in map(_value, value) if item)
        if len(items) == len(value):
            return Value("tuple", str(value), items, f"({', '.join(item.shown for item in items)})")
    return None


def _line(text: str, key: str) -> int:
    """The line of the table ``[key]``, or of the first one below it."""
    found = re.search(rf"^[ \t]*\[\s*{re.escape(key)}(?:\s*\]|\.)", text, re.M)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def author_line(entry: Entry) -> str:
    """``Vaswani, Shazeer et al.``: up to three family names, or the organization."""
    persons = entry.persons.get("author", [])
    names = [" ".join(person.prelast_names + person.last_names).strip("{}") for person in persons]
    named = [name for name in names if name.lower() != "others"]
    if not named:
        return str(entry.fields.get("organization", ""))
    if len(names) > len(named) or len(named) > 3:
        return f"{named[0] if len(named) < 3 else ', '.join(named[:3])} et al."
    return " and ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def link(entry: Entry) -> str:
    """Where the source can be read: its url, doi or arXiv page."""
    values = entry.fields
    if "url" in values:
        return values["url"]
    if "doi" in values:
        return f"https://doi.org/{values['doi']}"
    return f"https://arxiv.org/abs/{values['eprint']}" if "eprint" in values else ""

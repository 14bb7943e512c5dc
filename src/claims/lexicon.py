"""Which digits and number words of a text are quantities.

The rules are data (lexicon.toml): patterns of names that hold digits, nouns that make a count of a small number, and
number words that are mere articles. What is left is a number that must be bound.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from claims.words import MULTIPLES, PARTS, SCALES, WORDS

DEFAULT = Path(__file__).with_name("lexicon.toml")
KEYS = ("names", "nouns", "articles")
NUMBER = re.compile(r"(?<![\w.,])(?:[≈~<>≤≥]\s?)?[−+-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[eE][+−-]?\d+)?|[½⅓¼¾⅔⅛]")
ATTACHED = re.compile(
    r"\s?(?:%|×|[KMGTPE]i?B\b|kB\b|bytes?\b|[kMGTPE]?FLOPs?\b|ms\b|[µu]s\b|s\b|(?:thousand|million|billion|trillion)\b)"
    r"|[A-Za-zµ]+"
)
WORD = re.compile(r"\b[A-Za-z]+\b")
MULTIPLIED = frozenset(WORDS) - {"one", "zero"}  # which "times" and "fold" make a quantity of
TIMES = re.compile(r" times\b")
HYPHENS = ("-", "'", "’")
ARTICLES = re.compile(r"(?: (?:of|the|as|many|much|a))+\b")  # between a number word and its noun: half of the bytes


class LexiconError(ValueError):
    """The lexicon file is wrong; the message names the file, the key and the rule."""


@dataclass(frozen=True)
class Lexicon:
    """The rules, compiled."""

    names: tuple[str, ...]
    nouns: frozenset[str]
    articles: frozenset[str]

    @cached_property
    def _name(self) -> re.Pattern[str]:
        """Any name: from the beginning of a word, which spares many trials, to the end of its last word."""
        return re.compile(rf"(?<!\w)(?!\x00)(?:{'|'.join(self.names)})(?:(?<=\w)\w+)?" if self.names else r"(?!)")

    @cached_property
    def counted(self) -> frozenset[str]:
        """The nouns, singular and plural."""
        plural = {noun + "s" for noun in self.nouns} | {noun[:-1] + "ies" for noun in self.nouns if noun.endswith("y")}
        return self.nouns | plural | {"per", "a", "an", "each", "and", "of", "the"}

    @cached_property
    def _noun(self) -> re.Pattern[str]:
        nouns = "|".join(sorted(map(re.escape, self.nouns), key=len, reverse=True))
        return re.compile(rf"(?:[ \xa0-]|\n[ \t]*)(?:[A-Za-z/'-]+[ \xa0])?(?:{nouns})(?:s|es)?\b")

    @cached_property
    def _counting(self) -> frozenset[str]:
        """Number words that count what follows them."""
        return frozenset({*WORDS, *MULTIPLES, *PARTS, "hundred", *SCALES} - self.articles)

    def bare(self, text: str) -> bool:
        """A whole number from 0 to 10."""
        digits = text.strip().lstrip("−-+")
        return digits.isascii() and digits.isdigit() and int(digits[:3]) <= 10 and len(digits) < 3

    def loose(self, text: str) -> list[tuple[int, int]]:
        """The spans of numbers and counted number words that are quantities, in order."""
        text = self._name.sub(lambda m: "\x00" * len(m[0]), text)
        found = [span for match in NUMBER.finditer(text) if (span := self._quantity(text, match))]
        found += [span for match in WORD.finditer(text) if (span := self._number_word(text, match))]
        return sorted(found)

    def _quantity(self, text: str, match: re.Match[str]) -> tuple[int, int] | None:
        start, end = match.start(), match.start() + len(match[0].rstrip(","))
        if self.bare(text[start:end]) and not ATTACHED.match(text, end) and not self._noun.match(text, end):
            return None
        return start, end

    def _number_word(self, text: str, match: re.Match[str]) -> tuple[int, int] | None:
        """Times and folds always count, a fraction of something, any other word if its noun follows."""
        word, start, end = match[0].lower(), *match.span()
        if word in MULTIPLIED and (times := TIMES.match(text, end)):
            return start, times.end()
        if word.endswith("fold") and word[:-4] in MULTIPLIED:
            return start, end
        if word not in self._counting or text[end : end + 1] in HYPHENS:
            return None
        between = ARTICLES.match(text, end)
        if between and self._noun.match(text, between.end()):
            return start, end
        return (start, end) if (word not in PARTS or word == "half") and self._noun.match(text, end) else None


def load(extra: Path | None = None) -> Lexicon:
    """The built-in rules and those of a project's own file, whose names are tried first.

    Raises LexiconError for a file that cannot be read or a pattern that does not compile.
    """
    names: list[str] = []
    nouns: set[str] = set()
    articles: set[str] = set()
    for path in [DEFAULT, *([extra] if extra else [])]:
        try:
            rules = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise LexiconError(f"{path}: {error}") from None
        for key, value in rules.items():
            if key not in KEYS:
                raise LexiconError(f"{path}: {key}: unknown, the keys are names, nouns and articles")
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise LexiconError(f"{path}: {key}: must be a list of strings")
        for pattern in rules.get("names", []):
            try:
                re.compile(pattern)
            except re.error as error:
                raise LexiconError(f"{path}: names: {pattern}: {error}") from None
        names = rules.get("names", []) + names
        nouns |= set(rules.get("nouns", []))
        articles |= set(rules.get("articles", []))
    return Lexicon(tuple(names), frozenset(nouns), frozenset(articles))

"""Number words: ``twenty four``, ``four times``, ``two thirds``, ``half``, ``twelvefold``."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

_ONES = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10, "twelfth": 12}

WORDS = {word: Fraction(number) for number, word in enumerate(_ONES.split())}
WORDS |= {word: Fraction(10 * number) for number, word in enumerate(_TENS.split(), 2)}
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
PARTS = {word: Fraction(1, number) for word, number in _PARTS.items()}
PARTS |= {word + "s": part for word, part in PARTS.items() if word != "half"} | {"halves": Fraction(1, 2)}
MULTIPLES = {word: Fraction(n) for word, n in {"once": 1, "twice": 2, "thrice": 3, "double": 2, "dozen": 12}.items()}


def words_to_number(words: Sequence[str]) -> Fraction | None:
    """The number that these words say; None where they say none."""
    kept = [word.lower() for word in words if word.lower() not in ("a", "an", "and", "the")]
    if not kept:
        return None
    last = kept[-1]
    if last.endswith("fold") and words_to_number([last[:-4]]) is not None:
        kept[-1] = last[:-4]
    elif len(kept) > 1 and last == "times":
        kept.pop()
    if kept[-1] in PARTS:
        times = _whole(kept[:-1]) if kept[:-1] else Fraction(1)
        return None if times is None else times * PARTS[kept[-1]]
    if len(kept) == 1 and kept[0] in MULTIPLES:
        return MULTIPLES[kept[0]]
    return _whole(kept)


def _whole(words: Sequence[str]) -> Fraction | None:
    total, part = Fraction(0), None
    for word in words:
        if word in WORDS:
            if part is not None and not _may_follow(part, WORDS[word]):
                return None
            part = (part or Fraction(0)) + WORDS[word]
        elif word == "hundred" and part is not None:
            part *= 100
        elif word in SCALES and part is not None:
            total, part = total + part * SCALES[word], Fraction(0)
        else:
            return None
    return None if part is None else total + part


def _may_follow(part: Fraction, word: Fraction) -> bool:
    """``hundred five`` and ``twenty four`` are numbers, ``four five`` is not."""
    return part % 100 == 0 or (part % 10 == 0 and part % 100 >= 20 and word < 10)

"""No page computes the digits of a name, so a wrong one is caught here: the models that the book names exist."""

import re
import tomllib
from collections import defaultdict
from pathlib import Path

from claims.project import find

ROOT = Path(__file__).parents[1]
RECORDS = ("src/decoder/released.json", "docs/reference/facts.toml", "docs/reference/references.bib")
REPOSITORY = re.compile(r"`[A-Za-z][A-Za-z0-9-]*/([\w.-]*\d[\w.-]*)`")  # as in `google/gemma-7b`
BESIDES = {  # named in passing, and recorded nowhere else
    "BLOOM-176B", "Falcon 2 11B", "GPT-2 small", "LLaMA-13B", "LLaMA-33B", "LLaMA-65B", "Llama 2 34B", "Llama 3.1 8B",
    "Mixtral 8x22B", "OPT-175B", "Qwen 3.5 27B", "Qwen1.5-72B", "Qwen3-235B-A22B", "Qwen3-Next",
    "T5 v1.1 XL", "T5 v1.1 XXL",
}  # fmt: skip


def bare(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).lower()


def names() -> dict[str, set[str]]:
    """Every name of a model that holds a digit, without its punctuation, and the pages that use it."""
    lexicon = tomllib.loads((ROOT / "docs/reference/lexicon.toml").read_text("utf-8"))
    family = re.compile(next(pattern for pattern in lexicon["names"] if "Llama" in pattern))
    found = defaultdict(set)
    for path in find(ROOT).pages():
        text = (ROOT / path).read_text("utf-8")
        for name in [*family.findall(text), *REPOSITORY.findall(text)]:
            if re.search(r"\d", name):
                found[bare(name)].add(path)
    return found


def recorded() -> list[str]:
    lines = [line for path in RECORDS for line in (ROOT / path).read_text("utf-8").splitlines()]
    return [bare(part) for line in lines for part in re.split(r"[\"{},;:()]", line)]


def test_models_that_the_book_names_are_recorded() -> None:
    known = "\n".join([*recorded(), *map(bare, BESIDES)])
    unknown = {name: sorted(paths) for name, paths in names().items() if name not in known}
    assert unknown == {}
    assert bare("Llama 3 8B") in known and bare("Llama 3 9B") not in known


def test_no_name_is_listed_in_vain() -> None:
    known, used = "\n".join(recorded()), names()
    assert [name for name in BESIDES if bare(name) not in used or bare(name) in known] == []

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claims.lexicon import LexiconError, load

LEXICON = load()
ROOT = Path(__file__).parents[2]


def found(text, lexicon=LEXICON):
    return [text[start:end] for start, end in lexicon.loose(text)]


@pytest.mark.parametrize("number", range(11))
def test_a_bare_small_number_counts_only_before_its_noun(number):
    assert found(f"take {number} of them") == []
    assert found(f"take {number} heads") == [str(number)]
    assert found(f"take {number} large heads") == [str(number)]


@pytest.mark.parametrize(
    "text", ["11", "−11", "10.0", "0.5", "1,000", "1e3", "10%", "10×", "9 KiB", "3 ms", "7B", "≈ 5 GB"]
)
def test_other_numbers_always_count(text):
    assert len(found(f"take {text} of them")) == 1


def test_number_words():
    assert found("one head, two heads, the second layer, half-split halves") == ["two"]
    assert found("a quarter of the tokens, twice as many bytes, a dozen rows, tenfold") == [
        "quarter",
        "twice",
        "dozen",
        "tenfold",
    ]


def test_a_project_adds_its_own(tmp_path):
    path = tmp_path / "lexicon.toml"
    path.write_text('names = ["\\\\bModel 12\\\\b"]\nnouns = ["apple"]\narticles = ["two"]\n')
    own = load(path)
    assert found("Model 12 has 3 apples and two heads", own) == ["3"]
    assert found("Model 12B, xModel 12", own) == ["12", "12"]
    assert found("Model 12 has 3 apples and two heads") == ["12", "two"]


@pytest.mark.parametrize(
    "name", ["Nemotron-4 340B", "StarCoder2 3B", "Qwen2.5 72B", "Qwen3 8B", "LLaMA3-8B", "BLOOM 7B1"]
)
def test_a_name_of_the_project_is_wholly_a_name(name):
    book = load(ROOT / "docs/reference/lexicon.toml")
    assert found(f"of {name} the", book) == []
    assert found(f"{name}, 12 layers and 8 heads", book) == ["12", "8"]


def test_the_names_of_a_project_come_before_the_general_ones(tmp_path):
    path = tmp_path / "lexicon.toml"
    path.write_text("names = ['\\bModel2 \\d+B']\n")
    assert found("Model2 12B", load(path)) == []
    assert found("Model2 12B") == ["12"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("names = 3", "names: must be a list of strings"),
        ("words = []", "words: unknown, the keys are names, nouns and articles"),
        ('names = ["("]', "names: (: missing )"),
        ("names = [", "Invalid"),
        ("\xff", ""),
    ],
)
def test_a_broken_file_is_refused(tmp_path, text, message):
    path = tmp_path / "lexicon.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(LexiconError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)


@given(st.text(max_size=200))
def test_spans_are_in_order_and_inside(text):
    spans = LEXICON.loose(text)
    assert spans == sorted(spans) and all(0 <= start < end <= len(text) for start, end in spans)

import markdown
import pytest
from bs4 import BeautifulSoup

from claims import lexicon
from claims.check import check
from claims.glossary import GLOSSARY, load
from claims.project import find
from claims.site.render import fill, render

TERMS = """
["key/value cache"]
also = ["KV cache"]
meaning = 'Keys & values, "kept" | for later.'
page = "chapter.md"

[cache]
meaning = "Something kept."

[gate]
meaning = "A second projection."
"""


@pytest.fixture
def glossary(tmp_path):
    def make(text=TERMS):
        (tmp_path / "glossary.toml").write_text(text, encoding="utf-8")
        return load(tmp_path, "glossary.toml", lexicon.load())

    return make


@pytest.fixture
def uses(glossary, page):
    """The words that are linked on a page, as written."""

    def find_uses(text):
        parsed = page(text)
        return [parsed.text[start:end] for start, end, _ in glossary().first_uses(parsed)]

    return find_uses


def test_only_the_first_use_of_each_term(uses):
    assert uses("A gate. The KV cache, a key/value cache. Gates; caches.") == ["gate", "KV cache", "caches"]


def test_the_longest_words_win(uses):
    assert uses("One key/value cache and one cache.") == ["key/value cache", "cache"]


def test_across_a_line_end_and_in_a_list(uses):
    assert uses("- the key/value\n  cache\n- **Gates**\n") == ["key/value\n  cache", "Gates"]


@pytest.mark.parametrize(
    "text",
    [
        "# The gate",
        "::: claims.gate",
        "- [ ] gate",
        '!!! note "A gate"',
        '??? tip "A gate"',
        "[a gate](page.md)",
        "[gate](cite:one2031)",
        "`gate`",
        "$gate$",
        "<p>a gate</p>",
        "<!-- a gate -->",
        "```text\na gate\n```",
        "---\ntitle: A gate\n---",
        "a gated one, an investigate, a gate-like, logic/gate, gate/logic, gatekeeper, aggregate",
    ],
)
def test_where_no_link_belongs(uses, text):
    assert uses(f"{text}\n") == []
    assert uses(f"{text}\n\nThe gate.\n") == ["gate"]


def test_no_terms_no_links(glossary, page):
    assert list(glossary("").first_uses(page("A gate."))) == []


@pytest.mark.parametrize(
    ("entry", "slug", "message"),
    [
        ("[a]\nmeaning = 1", "bad-facts", "a: must be a table with a meaning"),
        ('[a]\nmeaning = "B."\nsee = "c"', "bad-facts", "a: see: unknown; known are also, meaning, page"),
        ('[a]\nmeaning = "B."\nalso = "b"', "bad-facts", "a: also must be a list of strings, got 'b'"),
        ('[a]\nmeaning = "B."\npage = 3', "bad-facts", "a: page must be a string, got 3"),
        ('[a]\nmeaning = "Of 32 layers."', "loose-number", "a: the meaning holds 32, and nothing checks it"),
        ('["Q gate"]\nalso = ["gate"]\nmeaning = "B."', "bad-facts", "Q gate: gate stands for gate already"),
        ('["kv Cache"]\nmeaning = "B."', "bad-facts", "kv Cache: kv Cache stands for key/value cache already"),
    ],
)
def test_troubles_stand_at_their_lines(glossary, entry, slug, message):
    [trouble] = glossary(f"{TERMS}\n{entry}\n").troubles
    assert (trouble.slug, trouble.message) == (slug, message)
    assert trouble.line == TERMS.count("\n") + 2


@pytest.mark.parametrize(("text", "line"), [("a = 1\n", 1), ("[a]\nmeaning = \n", 2)])
def test_a_broken_file_is_one_trouble(glossary, text, line):
    [trouble] = glossary(text).troubles
    assert (trouble.line, trouble.slug) == (line, "bad-facts")


def test_the_check_reports_troubles(project):
    root = project('glossary = "docs/terms.toml"', page="Text.")
    (root / "docs/terms.toml").write_text('[a]\nmeaning = "7 layers."\n', encoding="utf-8")
    [found] = check(find(root)).findings
    assert (found.path, found.line, found.slug) == ("docs/terms.toml", 1, "loose-number")


def test_the_page_and_the_links_to_it(project):
    root = project(
        'glossary = "docs/terms.toml"',
        chapter="# The cache\n\n| a KV cache | b |\n|---|---|\n| 1 | 2 |\n",
        terms=f"# Terms\n\nA gate.\n\n{GLOSSARY}\n",
    )
    (root / "docs/terms.toml").write_text(TERMS, encoding="utf-8")
    report = check(find(root))
    assert report.findings == []
    chapter, terms = (built(page, report) for page in report.pages)

    [link] = chapter.select("th a.term")
    assert link["href"] == "terms.md#term-key-value-cache"
    assert (link.text, link["title"]) == ("KV cache", 'Keys & values, "kept" | for later.')
    assert terms.select("a.term") == []
    assert [name.text for name in terms.select("dl > dt")] == ["cache", "gate", "key/value cache"]
    assert terms.select_one(f"dt #{link['href'].partition('#')[2]}")
    last = terms.select("dl > dd")[-1]
    assert last.text.strip() == 'Keys & values, "kept" | for later. See The cache.'
    assert last.a["href"] == "chapter.md"


def built(page, report):
    rendered = render(page, report)
    html = markdown.markdown(rendered.markdown, extensions=["attr_list", "def_list", "tables"])
    return BeautifulSoup(fill(html, rendered.html), "html.parser")

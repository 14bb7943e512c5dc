"""Pages as plain Markdown, and the list of them."""

from claims.check import check
from claims.project import find
from claims.site.plain import Entry, as_markdown, listing

PAGE = """\
---
description: d
---

# Size

A cache of [12](claim:x) bytes, [see](b.md).

```python title="Count"
x = 3 * 4
print("x is", x)
```

!!! note "Aside"
    Inside.

```python raises="ValueError"
int("four")
```
"""


def test_a_page_reads_as_it_is_seen(project):
    report = check(find(project(a=PAGE, b="# B\n")))
    assert report.findings == []
    assert as_markdown(report.pages[0], report) == (
        "# Size\n\nA cache of 12 bytes, see.\n\n```python\n# Count\nx = 3 * 4\nprint(\"x is\", x)\n```\n\n"
        "```text\nx is 12\n```\n\n**Aside**\n\nInside.\n\n```python\nint(\"four\")\n```\n\n"
        "```text\nValueError: invalid literal for int() with base 10: 'four'\n```\n"
    )  # fmt: skip


def test_what_a_page_gathers_stands_on_it(project):
    page = "# All\n\n<!-- claims:ledger -->\n\n<!-- claims:bibliography -->\n"
    cited = "---\ntitle: Size\n---\n\n[`4`](claim:len('a_b|')) of [Ann et al.](cite:ann)\n"
    root = project(a=cited, all=page)
    (root / "docs/reference").mkdir(exist_ok=True)
    (root / "docs/reference/references.bib").write_text("@misc{ann, title={Two * two}, author={Ann Ohm and others}}\n")
    report = check(find(root))
    assert report.findings == []
    assert as_markdown(report.pages[1], report) == (
        "# All\n\n## Size\n\n| on the page | expression or source | exact value | what moves it |\n|---|---|---|---|\n"
        "| 4 | <code>len\\('a\\_b\\|'\\)</code> | 4 |  |\n\n"
        "What moves these numbers has not been worked out since the page last changed.\n\n"
        '<a id="ann"></a>**Ohm et al.** . Two \\* two. Cited in: Size.\n'
    )


def test_the_list_follows_the_navigation():
    entries = [Entry("", "Start", "index.html.md", "What."), Entry("Tools", "Atlas", "t/index.html.md", "")]
    assert listing("Book", "On decoders.", entries) == (
        "# Book\n\n> On decoders.\n\n## Book\n\n- [Start](index.html.md): What.\n\n"
        "## Tools\n\n- [Atlas](t/index.html.md)\n"
    )

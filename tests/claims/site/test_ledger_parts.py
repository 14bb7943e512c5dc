import pytest

from claims.check import check
from claims.project import find
from claims.site.render import render


@pytest.mark.parametrize(("folder", "titles"), [("a/", ["A"]), ("b/", ["B"]), (".", ["Top"]), ("c/", [])])
def test_a_part_lists_the_pages_below_its_folder(project, folder, titles):
    root = project(top="# Top\n\n[4](<claim:2 + 2>)", ledger=f"# L\n\n<!-- claims:ledger {folder} -->\n")
    for name in ("a", "b"):
        (root / "docs" / name).mkdir()
        (root / "docs" / name / "page.md").write_text(f"# {name.upper()}\n\n[4](<claim:2 + 2>)\n", encoding="utf-8")
    report = check(find(root))
    assert report.findings == []
    [page] = [page for page in report.pages if page.path == "docs/ledger.md"]
    rendered = render(page, report).markdown
    assert [line for line in rendered.split("\n") if line.startswith("## ")] == [
        f"## [{title}]({'top.md' if title == 'Top' else f'{title.lower()}/page.md'})" for title in titles
    ]
    assert rendered.count("2 + 2") == len(titles)

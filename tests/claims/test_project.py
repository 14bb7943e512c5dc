import pytest

from claims.project import Project, ProjectError, find


def test_defaults(project):
    assert find(project(a="")) == Project(find().root)


def test_the_nearest_project_counts(project):
    root = project("time_limit = 3\ndocs = 'docs'", a="")
    (root / "docs/inner").mkdir()
    (root / "docs/pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert find(root / "docs/inner").root == root and find(root / "docs").time_limit == 3


def test_pages_are_found_and_sorted(project):
    root = project("notebooks = ['docs/labs/*.py']", b="", a="")
    for name in ("labs/z.py", "labs/y.md", ".hidden/x.md", "c.txt", "sub/a.md"):
        (root / "docs" / name).parent.mkdir(exist_ok=True)
        (root / "docs" / name).write_text("")
    (root / "docs/broken.md").symlink_to("nowhere.md")
    (root / "docs/loop").symlink_to("../docs")
    all_pages = ["docs/a.md", "docs/b.md", "docs/broken.md", "docs/labs/y.md", "docs/labs/z.py", "docs/sub/a.md"]
    assert find(root).pages() == all_pages
    assert find(root).pages(["docs/sub", "docs/a.md", root / "docs/a.md"]) == ["docs/a.md", "docs/sub/a.md"]
    assert find(root).pages(["docs/labs"]) == ["docs/labs/y.md", "docs/labs/z.py"]
    (root / "docs/labs/z.md").write_text("")
    assert find(root).pages(["docs/labs/z.md"]) == ["docs/labs/z.md", "docs/labs/z.py"]
    assert find(root).pages(["docs/labs/z.py"]) == ["docs/labs/z.py"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.md", "none.md: there is no such file or folder"),
        ("/etc", "/etc: not inside"),
        ("pyproject.toml", "pyproject.toml: no page; pages end in .md, or are named as notebooks"),
        ("docs/b.py", "docs/b.py: no page; pages end in .md, or are named as notebooks"),
    ],
)
def test_what_is_no_page_of_the_project_is_refused(project, path, message):
    root = project("notebooks = ['docs/labs/*.py']", a="")
    (root / "docs/b.py").write_text("")
    with pytest.raises(ProjectError, match=message):
        find(root).pages([path])

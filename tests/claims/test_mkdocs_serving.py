"""Under ``mkdocs serve`` an edit of pages makes those pages again, or the whole site if others would change too."""

import os
import time
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import ConfigurationError

from claims.mkdocs_serving import Rebuild, state

MKDOCS = """
site_name: Book
theme: {name: material, font: false}
plugins: [claims]
markdown_extensions: [claims, attr_list, pymdownx.superfences]
"""
FIRST = "# The first page\n\n```python\nwidth = 24\n```\n\nIt is [24](claim:width) wide. See [that](second.md#top).\n"
SECOND = "# Second {#top}\n\nWords.\n"
LAB = "# %% [markdown]\n# # A lab\n#\n# It has [4](claim:layers) layers.\n\n# %%\nlayers = 4\n"
LEDGER = "# Ledger\n\n<!-- claims:ledger -->\n"


class Loop:
    """What ``mkdocs serve`` does, but for the serving."""

    def __init__(self, root: Path) -> None:
        self.site = root / "served"
        self.wholes = 0
        self.config = load_config(site_dir=str(self.site))
        self.config.plugins.on_startup(command="serve", dirty=False)
        self.whole(self.config)
        self._watched_paths = {self.config.docs_dir: 1}
        self.builder = self.whole
        self.config.plugins.on_serve(self, config=self.config, builder=self.whole)

    def whole(self, config=None):
        self.wholes += 1
        build(config or load_config(site_dir=str(self.site)), serve_url="http://127.0.0.1:8000/")

    def after(self, *edits: tuple[Path, str]) -> dict[str, str]:
        """The pages that were written anew after some edits, with their HTML, and whether the whole site was."""
        for path in self.site.rglob("*.html"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        time.sleep(0.1)
        for path, text in edits:
            path.write_text(text)
        self.wholes = 0
        self.builder()
        pages = [path for path in self.site.rglob("index.html") if path.stat().st_mtime > 1_700_000_000]
        return {path.parent.relative_to(self.site).as_posix(): path.read_text("utf-8") for path in pages}


@pytest.fixture
def loop(project):
    pages = {"first": FIRST, "second": SECOND, "lab": "<!-- claims:notebook lab.py -->\n", "ledger": LEDGER}
    root = project('notebooks = ["docs/*.py"]', index="# Book\n", **pages)
    (root / "docs" / "lab.py").write_text(LAB)
    (root / "mkdocs.yml").write_text(MKDOCS)
    loop = Loop(root)
    yield loop
    loop.config.plugins.on_shutdown()


def docs(name: str) -> Path:
    return Path("docs", f"{name}.md").absolute()


def test_an_edit_of_prose_makes_its_page_again_and_no_other(loop):
    made = loop.after((docs("first"), FIRST.replace("wide", "broad")))
    assert set(made) == {"first"} and loop.wholes == 0
    assert ">24</data> broad" in made["first"]
    assert "24 broad" in (loop.site / "first/index.html.md").read_text("utf-8")


def test_an_edit_of_a_block_shows_the_new_value_there_and_in_the_ledger(loop):
    edited = FIRST.replace("width = 24", "width = 25")
    made = loop.after((docs("first"), edited))
    assert set(made) == {"first", "ledger"} and loop.wholes == 0
    assert "(the code gives 25)" in made["first"] and "<td>25</td>" in made["ledger"]
    assert "width = 25" in (loop.site / "first/first.ipynb").read_text("utf-8")
    assert "claim-drift" not in loop.after((docs("first"), edited.replace("[24]", "[25]")))["first"]


def test_an_edit_of_a_notebook_makes_the_page_that_stands_for_it_again(loop):
    made = loop.after((docs("lab").with_suffix(".py"), LAB.replace("= 4", "= 5")))
    assert set(made) == {"lab", "ledger"} and loop.wholes == 0
    assert "(the code gives 5)" in made["lab"]
    assert "layers = 5" in (loop.site / "lab/lab.py").read_text("utf-8")


def test_a_formula_brings_its_characters_into_the_font(loop):
    font = loop.site / "assets/fonts/stix-two-math.woff2"
    assert not font.exists()
    assert set(loop.after((docs("second"), f"{SECOND}\n$\\theta$\n"))) == {"second"}
    small = font.stat().st_size
    assert set(loop.after((docs("second"), f"{SECOND}\n$\\theta \\epsilon \\mathbb{{R}}$\n"))) == {"second"}
    assert font.stat().st_size > small


@pytest.mark.parametrize(
    "edited",
    [
        SECOND.replace("Second", "Last"),  # its title stands in the navigation
        SECOND.replace("#top", "#head"),  # the first page links there
        f"---\ndescription: Words.\n---\n{SECOND}",
    ],
)
def test_what_other_pages_show_of_a_page_makes_the_whole_site_again(loop, edited):
    made = loop.after((docs("second"), edited))
    assert set(made) == {".", "first", "second", "lab", "ledger"} and loop.wholes == 1
    assert set(loop.after((docs("first"), FIRST.replace("wide", "broad")))) == {"first"}


def test_another_file_makes_the_whole_site_again(loop):
    assert "third" in loop.after((docs("third"), "# Third\n")) and loop.wholes == 1
    loop.after((docs("first").with_name("data.toml"), "a = 1\n"), (docs("first"), FIRST.replace("wide", "broad")))
    assert loop.wholes == 1
    docs("third").unlink()
    assert "first" in loop.after() and loop.wholes == 1
    assert not (loop.site / "third").exists()


def test_after_a_build_that_failed_the_next_is_whole(loop, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr("claims.mkdocs_serving._build_page", lambda *_, **__: 1 / 0)
        loop.after((docs("first"), FIRST.replace("wide", "broad")))
    assert "second" in loop.after((docs("first"), FIRST.replace("wide", "long"))) and loop.wholes == 1


def test_a_broken_configuration_is_told_until_it_is_repaired(loop):
    path = docs("first").parents[1] / "mkdocs.yml"
    loop._watched_paths[str(path)] = 1
    loop.config.plugins.on_serve(loop, config=loop.config, builder=loop.whole)
    with pytest.raises(ConfigurationError):
        loop.after((path, f"{MKDOCS}theme: ["))
    with pytest.raises(ConfigurationError):
        loop.after((docs("first"), FIRST.replace("wide", "broad")))
    assert "second" in loop.after((path, MKDOCS)) and loop.wholes == 1


@pytest.mark.parametrize("name", [".first.md.swp", "first.md~", "__pycache__/first.pyc"])
def test_what_no_author_edits_builds_nothing(tmp_path, name):
    (tmp_path / "__pycache__").mkdir()
    rebuild = Rebuild([str(tmp_path)], lambda changed: 1 / 0, lambda: 1 / 0)
    (tmp_path / name).write_text("")
    rebuild()


def test_edits_are_seen_by_time_or_size(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("one")
    before = state([str(tmp_path), str(page), str(tmp_path / "missing")])
    assert list(before) == [str(page)]
    stat = page.stat()
    page.write_text("three")
    os.utime(page, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert state([str(tmp_path)]) != before
    page.write_text("two")
    os.utime(page, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert state([str(tmp_path)]) != before

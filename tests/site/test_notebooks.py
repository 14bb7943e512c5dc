"""Every page that runs code downloads as a notebook; each of them runs in a fresh kernel."""

import json
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbclient import NotebookClient

from claims import parse
from claims.page import Page
from claims.project import find
from claims.site.notebook import as_ipynb, notebook

ROOT = Path(__file__).parents[2]
PROJECT = find(ROOT)


def pages_with_code() -> dict[str, Page]:
    pages = {path: parse.read(ROOT, path, PROJECT.words) for path in PROJECT.pages()}
    return {path: page for path, page in pages.items() if any(block.runs for block in page.python)}


PAGES = pages_with_code()


def test_there_is_something_to_run() -> None:
    assert {"docs/index.md", "docs/decisions/heads-and-cache.md", "docs/labs/tying.py"} <= set(PAGES)


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_download_runs_in_a_fresh_kernel(path: str) -> None:
    made = nbformat.reads(as_ipynb(notebook(PAGES[path], PROJECT.preload)), as_version=4)
    NotebookClient(made, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    ran = [cell for cell in made.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in ran] == list(range(1, len(ran) + 1))


@pytest.mark.parametrize("path", PAGES)
def test_its_page_offers_it(path: str, site: Path) -> None:
    name = Path(path).relative_to("docs").with_suffix("")
    folder = site / (name.parent if name.name == "index" else name)
    soup = BeautifulSoup((folder / "index.html").read_text("utf-8"), "html.parser")
    offered = [link["href"] for link in soup.select(".claims-downloads a[download]")]
    assert offered == [f"{name.name}.ipynb"] + ([f"{name.name}.py"] if path.endswith(".py") else [])
    made = nbformat.from_dict(json.loads((folder / offered[0]).read_text("utf-8")))
    nbformat.validate(made)
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    assert len(code) >= sum(block.runs for block in PAGES[path].python)


def test_a_lab_is_as_light_as_a_chapter(site: Path) -> None:
    """What mkdocs-jupyter's own page would bring along is not there."""
    for path in PAGES:
        if path.endswith(".py"):
            html = (site / "labs" / Path(path).stem / "index.html").read_text("utf-8")
            assert not {"jp-Notebook", "MathJax", "require.js"} & set(html.replace('"', " ").split())
            soup = BeautifulSoup(html, "html.parser")
            assert soup.select("data.claim") and soup.select("pre.claims-output")
            assert not soup.select("style") and not soup.select(".jupyter-wrapper")

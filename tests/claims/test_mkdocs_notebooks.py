"""Percent notebooks in a real MkDocs build: checked, executed by Jupyter as well, shown like any other page."""

import os
import subprocess
import sys

import pytest
from bs4 import BeautifulSoup

SETTINGS = 'notebooks = ["docs/*.py"]'
MKDOCS = """
site_name: Book
plugins:
  - claims
  - mkdocs-jupyter: {include: ["*.py"], ignore: ["*.md"], execute: true, allow_errors: false, cache: false}
markdown_extensions: [claims, pymdownx.superfences]
"""
LAB = """# %% [markdown]
# # A lab
#
# It has [24](claim:layers) layers.

# %%
layers = 24
print(layers)
"""
JUPYTER_ONLY = "\n# %%\nimport sys\n\nassert 'ipykernel' not in sys.modules, 'this is Jupyter'\n"

pytestmark = pytest.mark.slow


@pytest.fixture
def build(project):
    """Build a book of one page and some notebooks; what MkDocs printed, and its exit status."""

    def run(command="build", notebooks=None, **pages):
        root = project(SETTINGS, index="# Book\n\n[lab](lab.md)\n", **pages)
        for name, text in (notebooks or {}).items():
            (root / "docs" / f"{name}.py").write_text(text)
        (root / "mkdocs.yml").write_text(MKDOCS)
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", command, "--strict"],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr, root / "site"

    return run


def stub(name):
    return f"---\ndescription: A lab of one block.\n---\n<!-- claims:notebook {name}.py -->\n"


def test_a_notebook_is_a_page_like_any_other(build):
    notebooks = {"lab": LAB, "other": LAB.replace("24", "25")}
    status, said, site = build(notebooks=notebooks, lab=stub("lab"), other=stub("other"))
    assert status == 0, said
    soup = BeautifulSoup((site / "lab/index.html").read_text("utf-8"), "html.parser")
    assert [data["value"] for data in soup.select("data.claim")] == ["24"]
    assert [output.text for output in soup.select("pre.claims-output")] == ["24"]
    assert not soup.select(".jupyter-wrapper")
    assert [link["href"] for link in soup.select(".claims-downloads a")] == ["lab.ipynb", "lab.py"]
    assert {path.name for path in (site / "lab").iterdir()} == {"index.html", "index.html.md", "lab.ipynb", "lab.py"}
    assert "layers = 25" in (site / "other/other.py").read_text("utf-8")
    assert not (site / "lab.py").exists()


def test_a_cell_that_only_jupyter_cannot_run_stops_the_build(build):
    status, said, _ = build(notebooks={"lab": LAB + JUPYTER_ONLY}, lab=stub("lab"))
    assert status == 1
    assert "lab.py: Jupyter cannot run it" in said and "AssertionError: this is Jupyter" in said
    assert "site-packages/mkdocs" not in said  # Jupyter tells where the cell broke, and MkDocs no more than that


def test_a_wrong_number_stops_the_build_before_jupyter(build):
    status, said, _ = build(notebooks={"lab": LAB.replace("[24]", "[12]")}, lab=stub("lab"))
    assert status == 1
    assert "docs/lab.py:4:11: drift: the text says 12, the code gives 24" in said


def test_a_notebook_without_a_page_is_refused(build):
    status, said, _ = build(notebooks={"lab": LAB}, lab="# Not it\n")
    assert status == 1
    assert "docs/lab.py needs a page of its name, ending in .md, that holds <!-- claims:notebook lab.py -->" in said


def test_a_page_without_its_notebook_is_refused(build):
    status, said, _ = build(lab=stub("lab"))
    assert status == 1
    assert "docs/lab.md: it stands for the notebook docs/lab.py, which is not among those checked" in said

"""How fast the checker and a build with it are, beside other ways to run a page's code.

Two generated books: 12 pages of 9 blocks (torch, one figure) and many pages of 100 claims. Every time is one run on
this machine; what travels is the ratio within one run. A tool that is not installed is left out.

    python benchmarks/claims_speed.py [--pages 12] [--claims 1000,10000,100000]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from claims import lexicon
from claims.check import program
from claims.facts import Facts
from claims.judge import judge
from claims.parse import read
from claims.project import Project
from claims.render import render
from claims.report import Checked, Report
from claims.session import BlockResult, Evaluation, Result
from claims.values import describe

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CI": "", "NO_MKDOCS_2_WARNING": "1"}
FENCES = "pymdownx.superfences, pymdownx.highlight"
THEME = "theme: {name: material, font: false}\n"
FIGURE = """\
import matplotlib.pyplot as plt

plt.plot([width, 2 * width, 3 * width])
plt.show()
"""
PROJECT = (
    '[tool.claims]\nfacts = "facts.toml"\nbibliography = "references.bib"\npreload = ["torch", "matplotlib.pyplot"]\n'
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=12, help="pages of the book that is built")
    parser.add_argument("--claims", default="1000,10000,100000", help="numbers of claims, with commas")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builds(Path(folder), arguments.pages)
    print(f"\n{'claims':>9} {'parse':>8} {'judge':>8} {'render':>8} {'all':>8} {'claims/s':>9}")
    for number in map(int, arguments.claims.split(",")):
        scale(number)


# --- a book, built in several ways ------------------------------------------------------------------------------------


def blocks(page: int) -> list[str]:
    """Nine blocks; the last one draws."""
    first = f"import torch\nfrom sizes import WIDTH\n\nwidth = WIDTH + {page}\nx = torch.randn(width, width)\n"
    middle = [f"y{i} = (x @ x.T).sum(dim=0) * {i}\nprint(y{i}.shape)\n" for i in range(1, 8)]
    return [first, *middle, FIGURE]


def book(root: Path, pages: int, tool: str) -> None:
    """The same pages for each tool, in the form that it runs."""
    docs = root / "docs"
    docs.mkdir(parents=True)
    (root / "sizes.py").write_text("WIDTH = 96\n")
    for page in range(pages):
        codes = blocks(page)
        if tool == "mkdocs-jupyter":
            cells = "\n".join(f"# %%\n{code}" for code in codes)
            (docs / f"page{page}.py").write_text(f"# %% [markdown]\n# # Page {page}\n\n{cells}")
            continue
        options = {"claims": "", "markdown-exec": ' exec="true" source="above" result="text" session="s"'}.get(tool, "")
        last = ' alt="A line"' if tool == "claims" else options
        fences = [f"```python{last if code is FIGURE else options}\n{code}```\n" for code in codes]
        count = f"It is [{96 + page}](claim:width) wide.\n" if tool == "claims" else f"It is {96 + page} wide.\n"
        (docs / f"page{page}.md").write_text(f"# A page\n\n{count}\n" + "\n".join(fences))
    (docs / "index.md").write_text("# A book\n")
    configuration = f"site_name: Book\n{THEME}"
    configuration += {
        "claims": f"plugins: [claims]\nmarkdown_extensions: [claims, attr_list, {FENCES}]\n",
        "markdown-exec": f"plugins: [markdown-exec]\nmarkdown_extensions: [{FENCES}]\n",
        "mkdocs-jupyter": "plugins:\n  - mkdocs-jupyter: {execute: true, allow_errors: false}\n",
    }.get(tool, f"plugins: []\nmarkdown_extensions: [{FENCES}]\n")
    (root / "mkdocs.yml").write_text(configuration)
    (root / "pyproject.toml").write_text(PROJECT)


def build(root: Path) -> float:
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f", str(root / "mkdocs.yml")]
    environment = ENVIRONMENT | {"PYTHONPATH": str(root), "MPLBACKEND": "Agg"}
    start = time.perf_counter()
    run = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{root.name}: {run.stderr[-2000:]}")
    return time.perf_counter() - start


def builds(folder: Path, pages: int) -> None:
    times: dict[str, float] = {}
    for tool, module in (
        ("mkdocs", "mkdocs"),
        ("claims", "claims"),
        ("markdown-exec", "markdown_exec"),
        ("mkdocs-jupyter", "mkdocs_jupyter"),
    ):
        if importlib.util.find_spec(module) is None:
            print(f"{tool}: not installed, left out")
            continue
        root = folder / tool
        book(root, pages, tool)
        times[f"{tool}, cold" if tool == "claims" else tool] = build(root)
        if tool == "claims":
            times["claims, warm"] = build(root)
            page = root / "docs" / "page0.md"
            page.write_text(page.read_text().replace("# A page", "# The first page").replace("* 1\n", "* 10\n"))
            times["claims, one page edited"] = build(root)
            (root / "sizes.py").write_text("WIDTH = 96 + 0\n")
            times["claims, one module edited"] = build(root)
            shutil.rmtree(root / "site")
    print(f"{'a book of ' + str(pages) + ' pages':28} {'seconds':>8} {'x mkdocs':>9}")
    for name, seconds in times.items():
        print(f"{name:28} {seconds:8.2f} {seconds / times['mkdocs']:9.2f}")


# --- time against the number of claims --------------------------------------------------------------------------------


def scale(number: int) -> None:
    """Parse, judge and render pages of 100 claims whose results are at hand."""
    words, facts = lexicon.load(), Facts()
    parse_time = judge_time = render_time = 0.0
    for page in range(number // 100):
        rows = [f"Across [{i:,}](claim:n[{i}]) layers, {'word ' * 8} of H200." for i in range(page, page + 100)]
        text = "```python\nn = range(200_000)\n```\n\n" + "\n\n".join(rows) + "\n"
        start = time.perf_counter()
        parsed = read(Path("/"), f"page{page}.md", words, text)
        parse_time += time.perf_counter() - start
        wanted = program(parsed)
        values = tuple(Evaluation(describe(eval(e.text, {"n": range(200_000)}))) for e in wanted.expressions)
        checked = Checked(parsed, wanted, Result((BlockResult("ran"),), values))
        start = time.perf_counter()
        judge(checked, facts, words)
        judge_time += time.perf_counter() - start
        assert checked.findings == [] and len(parsed.claims) == 100
        start = time.perf_counter()
        render(checked, Report(Project(Path("/")), facts, [checked], []))
        render_time += time.perf_counter() - start
    total = parse_time + judge_time + render_time
    print(f"{number:9,} {parse_time:8.2f} {judge_time:8.2f} {render_time:8.2f} {total:8.2f} {number / total:9,.0f}")


if __name__ == "__main__":
    main()

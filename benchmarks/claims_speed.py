"""How fast the checker and a build with it are, beside other ways to run a page's code.

A generated book of 12 pages with 9 blocks each (torch, one figure a page) is built by each tool, cold, warm and after
edits; then books of more pages, and pages of 100 claims whose results are at hand. Times are wall clock and processor
seconds of a command with all that it starts. What travels from one machine to another is a ratio within one run: of
the processor seconds where the machine has other work. A tool that is not installed is left out, and said so.

    python benchmarks/claims_speed.py [--quick]
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from claims import lexicon
from claims.check import program
from claims.facts import Facts
from claims.judge import judge
from claims.parse import read
from claims.project import Project
from claims.report import Checked, Report
from claims.results import BlockResult, Evaluation, Result
from claims.site.render import render
from claims.values import describe

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CI": "", "MPLBACKEND": "Agg", "NO_MKDOCS_2_WARNING": "1"}
FENCES = "pymdownx.superfences, pymdownx.highlight"
BUILD = [sys.executable, "-m", "mkdocs", "build", "-q"]
CHECK = [sys.executable, "-m", "claims", "check"]
SETTINGS = {
    "claims": f"plugins: [claims]\nmarkdown_extensions: [claims, attr_list, {FENCES}]\n",
    "markdown-exec": f"plugins: [markdown-exec]\nmarkdown_extensions: [{FENCES}]\n",
    "mkdocs-jupyter": "plugins:\n  - mkdocs-jupyter: {execute: true, allow_errors: false}\n",
    "mkdocs": f"plugins: []\nmarkdown_extensions: [{FENCES}]\n",
}
EXEC = ' exec="true" source="above" result="text" session="s"'
EXEC_FIGURE = ' exec="true" source="above" html="true" session="s"'
PROJECT = '[tool.claims]\npreload = ["torch", "matplotlib.pyplot"]\n'
DRAW = "import matplotlib.pyplot as plt\n\nplt.plot([width, 2 * width, 3 * width])\n"
PRINT_FIGURE = 'import io\n\ndrawn = io.StringIO()\nplt.savefig(drawn, format="svg")\nprint(drawn.getvalue())\n'


@dataclass(frozen=True)
class Took:
    """Wall clock and processor seconds of some commands."""

    wall: float
    processor: float


@click.command()
@click.option("--quick", is_flag=True, help="One small book of each kind: a minute, for a first look.")
def main(quick: bool) -> None:
    """Time the checker beside other ways to run a page's code."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        builds(root / "tools", pages=4 if quick else 12)
        served(root / "served", pages=4 if quick else 66)
        growth(root / "growth", [10, 30] if quick else [10, 100, 1000])
    scale([1_000, 3_000] if quick else [1_000, 10_000, 100_000])


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


# --- a book, in the form that each tool runs --------------------------------------------------------------------------


def blocks(page: int, tool: str) -> Iterator[str]:
    """Nine blocks; the last one draws."""
    yield f"import torch\nfrom sizes import WIDTH\n\nwidth = WIDTH + {page}\nx = torch.randn(width, width)\n"
    for i in range(1, 8):
        yield f"y{i} = (x @ x.T).sum(dim=0) * {i}\nprint(y{i}.shape)\n"
    yield DRAW + (PRINT_FIGURE if tool == "markdown-exec" else "plt.show()\n")


def page_of(number: int, tool: str) -> str:
    codes = list(blocks(number, tool))
    if tool == "mkdocs-jupyter":
        return f"# %% [markdown]\n# # A page\n#\n# It is {96 + number} wide.\n\n" + "\n".join(
            f"# %%\n{code}" for code in codes
        )
    fence, options = "```python", {"markdown-exec": EXEC}.get(tool, "")
    if tool == "jupyter-book":
        fence = "```{code-cell} python"
    last = {"claims": ' alt="A line"', "markdown-exec": EXEC_FIGURE}.get(tool, options)
    shown = [f"{fence}{options}\n{code}```\n" for code in codes[:-1]] + [f"{fence}{last}\n{codes[-1]}```\n"]
    count = f"[{96 + number}](claim:width)" if tool == "claims" else f"{96 + number}"
    head = "---\njupytext: {text_representation: {format_name: myst}}\nkernelspec: {name: python3}\n---\n"
    return (head if tool == "jupyter-book" else "") + f"# A page\n\nIt is {count} wide.\n\n" + "\n".join(shown)


def book(root: Path, pages: int, tool: str) -> Path:
    """Write the same pages for one of the tools; the folder of the book is returned."""
    docs = root / "docs"
    docs.mkdir(parents=True)
    (root / "sizes.py").write_text("WIDTH = 96\n")
    for number in range(pages):
        suffix = "py" if tool == "mkdocs-jupyter" else "md"
        (docs / f"page{number}.{suffix}").write_text(page_of(number, tool))
    (docs / "index.md").write_text("# A book\n")
    (root / "pyproject.toml").write_text(PROJECT)
    if tool == "jupyter-book":
        settings = {"title": "Book", "execute": {"execute_notebooks": "force", "allow_errors": False}}
        (docs / "_config.yml").write_text(json.dumps(settings))
        chapters = [{"file": f"page{number}"} for number in range(pages)]
        (docs / "_toc.yml").write_text(json.dumps({"format": "jb-book", "root": "index", "chapters": chapters}))
    else:
        settings_of = f"site_name: Book\ntheme: {{name: material, font: false}}\n{SETTINGS[tool]}"
        (root / "mkdocs.yml").write_text(settings_of)
    return root


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, f"{path} holds no {old!r}"
    path.write_text(text.replace(old, new))


# --- builds -----------------------------------------------------------------------------------------------------------


def run(root: Path, *commands: list[str]) -> Took:
    """Run commands in a book's folder, one after the other."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    path = os.pathsep.join(filter(None, [str(root), ENVIRONMENT.get("PYTHONPATH", "")]))
    for command in commands:
        done = subprocess.run(command, env=ENVIRONMENT | {"PYTHONPATH": path}, cwd=root, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} in {root.name}:\n{(done.stdout + done.stderr)[-2000:]}")
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Took(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def builds(folder: Path, pages: int) -> None:
    """The book by each tool."""
    plain = book(folder / "mkdocs", pages, "mkdocs")
    run(plain, BUILD)  # so that nobody pays for a cold disk
    took = {"plain mkdocs": run(plain, BUILD)}
    for tool, module in (("markdown-exec", "markdown_exec"), ("mkdocs-jupyter", "mkdocs_jupyter")):
        if importlib.util.find_spec(module) is None:
            click.echo(f"{tool}: not installed, left out")
        else:
            took[tool] = run(book(folder / tool, pages, tool), BUILD)
    if command := shutil.which("jupyter-book"):
        took["Jupyter Book"] = run(book(folder / "jupyter-book", pages, "jupyter-book"), [command, "build", "docs"])
    else:
        click.echo("Jupyter Book: no command jupyter-book, left out")
    took |= own(book(folder / "claims", pages, "claims"))
    base = took["plain mkdocs"]
    rows = []
    for name, it in took.items():
        figures = it.wall, it.wall / base.wall, it.processor, it.processor / base.processor
        rows.append([name, *(f"{figure:.2f}" for figure in figures)])
    show(f"A book of {pages} pages", ["", "wall s", "x mkdocs", "processor s", "x mkdocs"], rows)


def own(root: Path) -> dict[str, Took]:
    """The book by this checker: cold, warm and after edits."""
    page = root / "docs" / "page0.md"
    took = {"claims, check and build": run(root, CHECK, BUILD)}
    shutil.rmtree(root / ".cache")
    took["claims, cold"] = run(root, BUILD)
    took["claims, warm"] = run(root, BUILD)
    edit(page, "It is", "It is just")
    took["claims, prose edited"] = run(root, BUILD)
    edit(page, "* 1\n", "* 10\n")
    took["claims, block edited"] = run(root, BUILD)
    edit(root / "sizes.py", "96", "95 + 1")
    took["claims, module edited"] = run(root, BUILD)
    return took


# --- the author's loop ------------------------------------------------------------------------------------------------


@contextmanager
def server(root: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mkdocs", "serve", "--quiet", "--dev-addr", f"127.0.0.1:{port}"]
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([str(root), ENVIRONMENT.get("PYTHONPATH", "")])}
    with subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL) as process:
        yield f"http://127.0.0.1:{port}/"
        process.terminate()


def shown(address: str) -> str:
    """The page that is served at an address, nothing if there is none."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def until(address: str, text: str) -> float:
    """Seconds until the page at an address holds a text."""
    start = time.perf_counter()
    while text not in shown(address):
        if time.perf_counter() - start > 600:
            raise SystemExit(f"{address} never showed {text!r}")
        time.sleep(0.02)
    return time.perf_counter() - start


def served(root: Path, pages: int) -> None:
    """From the save of an edit until the page is served with it. MkDocs looks for edits twice a second."""
    page = book(root, pages, "claims") / "docs" / "page0.md"
    with server(root) as address:
        address += "page0/"
        first = until(address, "It is")
        prose, block = [], []
        for turn in range(5):
            edit(page, "It is", f"Edit {turn}: it is")
            prose.append(until(address, f"Edit {turn}:"))
            edit(page, f"Edit {turn}: it is", "It is")
            until(address, "It is")
            edit(page, f"dim=0) * {turn + 1}\n", f"dim=0) * {turn + 101}\n")
            block.append(until(address, f">{turn + 101}<"))
    rows = [["first build", f"{first:.2f}", "", ""]]
    for name, times in (("prose edited", prose), ("block edited", block)):
        figures = statistics.median(times), min(times), max(times)
        rows.append([name, *(f"{figure:.2f}" for figure in figures)])
    show(f"mkdocs serve, {pages} pages: seconds from save to page", ["", "median", "least", "most"], rows)


# --- growth -----------------------------------------------------------------------------------------------------------


def growth(folder: Path, sizes: list[int]) -> None:
    """Checks of books of more and more pages that each run one short block and hold 100 claims."""
    rows = []
    for pages in sizes:
        root = folder / str(pages)
        (root / "docs").mkdir(parents=True)
        (root / "pyproject.toml").write_text("[tool.claims]\n")
        for number in range(pages):
            (root / "docs" / f"page{number}.md").write_text(claiming(number))
        for name in ("cold", "warm"):
            it = run(root, CHECK)
            figures = f"{it.wall:.2f}", f"{it.processor:.2f}", f"{100 * pages / it.processor:,.0f}"
            rows.append([f"{name}, {pages:,} pages", f"{100 * pages:,}", *figures])
    show("claims check", ["", "claims", "wall s", "processor s", "claims/s"], rows)


def claiming(number: int) -> str:
    """A page of 100 claims."""
    rows = [f"Across [{i:,}](claim:n[{i}]) layers, {'word ' * 8} of H200." for i in range(number, number + 100)]
    return "```python\nn = range(200_000)\n```\n\n" + "\n\n".join(rows) + "\n"


def scale(numbers: list[int]) -> None:
    """Parse, judge and render pages of 100 claims whose results are at hand."""
    rows = []
    for number in numbers:
        took = stages(number // 100)
        total = sum(took)
        rows.append([f"{number:,}", *(f"{seconds:.2f}" for seconds in (*took, total)), f"{number / total:,.0f}"])
    columns = ["claims", "parse", "judge", "render", "all", "claims/s"]
    show("Claims whose results are at hand, processor seconds", columns, rows)


def stages(pages: int) -> tuple[float, float, float]:
    """Processor seconds of each stage."""
    words, facts, n = lexicon.load(), Facts(), range(200_000)
    took = [0.0, 0.0, 0.0]

    def timed(stage: int, work: Callable[[], object]) -> object:
        start = time.process_time()
        given = work()
        took[stage] += time.process_time() - start
        return given

    for number in range(pages):
        text = claiming(number)
        parsed = timed(0, lambda text=text: read(Path("/"), "page.md", words, text))
        wanted = program(parsed)
        values = tuple(Evaluation(describe(eval(e.text, {"n": n}))) for e in wanted.expressions)
        checked = Checked(parsed, wanted, Result((BlockResult("ran"),), values))
        timed(1, lambda checked=checked: judge(checked, facts, words))
        assert checked.findings == [] and len(parsed.claims) == 100
        report = Report(Project(Path("/")), facts, [checked], [])
        timed(2, lambda checked=checked, report=report: render(checked, report))
    return took[0], took[1], took[2]


if __name__ == "__main__":
    main()

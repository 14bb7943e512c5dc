"""The author's loop: a number that drifts is red in the page, with both values, and the server lives on."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from claims.gate import Gate, GateError
from claims.project import find

SIZES = "WIDTH = 64\n"
PAGE = """\
# A page

```python
from sizes import WIDTH

width = 3 * WIDTH
```

```python
--8<-- "snippets/more.py"
```

It is [192](claim:width) wide and [17](claim:more) more.
"""
CONFIGURATION = """\
site_name: Book
theme: {name: material, font: false}
watch: [snippets, src]
plugins: [claims]
markdown_extensions: [claims, attr_list, pymdownx.superfences, pymdownx.highlight, pymdownx.snippets]
"""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A book of one page, one module and one snippet, which is the working directory."""
    for name, text in {
        "docs/index.md": PAGE,
        "src/sizes.py": SIZES,
        "snippets/more.py": "more = 17\n",
        "mkdocs.yml": CONFIGURATION,
        "pyproject.toml": "[tool.claims]\ntime_limit = 20\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    return tmp_path


def write(path: Path, text: str) -> None:
    """Write a text a moment later than whatever was written before, as a person does."""
    time.sleep(0.1)
    path.write_text(text, "utf-8")


def test_a_drift_is_red_while_serving_and_refused_in_a_build(small: Path) -> None:
    gate = Gate(find())
    try:
        gate.serving = True
        gate.refresh()
        assert "claim-drift" not in gate.page(PAGE).markdown
        drifted = PAGE.replace("[192]", "[193]")
        write(small / "docs/index.md", drifted)
        shown = gate.page(drifted)
        assert re.search(
            r'<data class="claim claim-drift"[^>]*>193</data> <strong class="claim-drift">', shown.markdown
        )
        assert "(the code gives 192)" in shown.markdown
        assert "the text says 193, the code gives 192" in "".join(shown.html.values())
        write(small / "docs/index.md", PAGE)
        assert "claim-drift" not in gate.page(PAGE).markdown
        write(small / "docs/index.md", drifted)
        gate.serving = False
        gate.refresh()
        with pytest.raises(GateError, match=r"docs/index\.md:13:8: drift: the text says 193, the code gives 192"):
            gate.page(drifted)
    finally:
        gate.close()


def test_a_build_without_the_gate_publishes_no_unchecked_number(small: Path) -> None:
    """Without the plugin, which checks before the build, the extension itself refuses; so does Zensical's build."""
    (small / "docs/index.md").write_text(PAGE.replace("[192]", "[193]"), "utf-8")
    (small / "mkdocs.yml").write_text(CONFIGURATION.replace("plugins: [claims]", "plugins: []"), "utf-8")
    for engine in ("mkdocs", "zensical"):
        done = subprocess.run([sys.executable, "-m", engine, "build"], capture_output=True, text=True)
        assert done.returncode != 0, engine
        assert "the text says 193, the code gives 192" in done.stdout + done.stderr, engine
        page = small / "site" / "index.html"
        assert not page.exists() or "193" not in page.read_text("utf-8"), engine


def test_the_plugin_without_the_extension_is_refused(small: Path) -> None:
    text = CONFIGURATION.replace("markdown_extensions: [claims, ", "markdown_extensions: [")
    (small / "mkdocs.yml").write_text(text, "utf-8")
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "add claims to markdown_extensions" in done.stderr
    assert not (small / "site" / "index.html").exists()


@pytest.fixture
def served(small: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mkdocs", "serve", "--quiet", "--dev-addr", f"127.0.0.1:{port}"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    with open(small / "log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}/"
    server.terminate()
    server.wait(20)


def until(address: str, text: str, log: Path) -> str:
    """The page, once it holds the text; a server takes a moment to build it again."""
    page = ""
    for _ in range(1200):
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                page = answer.read().decode()
        except OSError:
            page = ""
        if text in page:
            return page
        time.sleep(0.1)
    pytest.fail(f"{text} was never shown; the server said:\n{log.read_text()}\n{page[-3000:]}")


@pytest.mark.slow
def test_every_kind_of_edit_shows_the_new_value(small: Path, served: str) -> None:
    log = small / "log"
    until(served, 'value="192"', log)
    write(small / "src/sizes.py", "WIDTH = 65\n")
    assert "(the code gives 195)" in until(served, 'value="195"', log)
    write(small / "docs/index.md", PAGE.replace("[192]", "[195]"))
    assert "claim-drift" not in until(served, ">195</data>", log)
    write(small / "snippets/more.py", "more = 18\n")
    assert "(the code gives 18)" in until(served, 'value="18"', log)
    write(small / "snippets/more.py", "more = 17\n")
    assert "claim-drift" not in until(served, 'value="17"', log)
    write(small / "docs/index.md", PAGE.replace("[192]", "[195]").replace("3 * WIDTH", "3 * WIDTH +"))
    assert "block-failed" in until(served, "claims-findings", log)
    write(small / "docs/index.md", PAGE.replace("[192]", "[196]"))
    assert "(the code gives 195)" in until(served, ">196</data>", log)

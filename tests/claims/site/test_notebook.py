"""A page as a notebook: what a reader sees, in cells that run."""

import json
import re

import nbformat
import pytest
from nbclient import NotebookClient

from claims.site.notebook import as_ipynb, as_percent, notebook

PAGE = """---
description: words
---

# A page {#top}

Of [24](claim:layers) layers, [Lind](cite:lind2031) found [2.4](cite:lind2031.loss). See [next](next.md#there)
and [outside](https://example.org). With $\\given{K = 2}$ it is $x = \\claim{48}{2 * layers}$.

```python title="sizes.py"
layers = 24
print(layers)
```

!!! question "Of [24](claim:layers)"
    First.

    ??? success "Answer"
        Inner.

        ```python
        half = layers // 2
        ```

        It is [12](claim:half).

    Middle.

After.

```python raises="ZeroDivisionError"
layers / 0
```

```python static="needs two machines"
run_elsewhere()
```

```python alt="A line." caption="Rising to [24](claim:layers)."
import matplotlib.pyplot as plt

plt.plot([0, layers])
```

```text
Not code.
```
"""


def cells(page, text=PAGE, seeded=()):
    return [(cell.kind, cell.source) for cell in notebook(page(text), seeded)]


def test_a_page_becomes_cells(page):
    assert cells(page) == [
        (
            "markdown",
            "# A page\n\nOf 24 layers, Lind found 2.4. See next\nand [outside](https://example.org). "
            "With $K = 2$ it is $x = 48$.",
        ),
        ("code", "# sizes.py\nlayers = 24\nprint(layers)"),
        ("markdown", "**Of 24**\n\nFirst.\n\n**Answer**\n\nInner."),
        ("code", "half = layers // 2"),
        ("markdown", "It is 12.\n\nMiddle.\n\nAfter."),
        ("code", "layers / 0"),
        ("markdown", "```python\nrun_elsewhere()\n```"),
        ("code", "import matplotlib.pyplot as plt\n\nplt.plot([0, layers])"),
        ("markdown", "*Rising to 24.*"),
        ("markdown", "```text\nNot code.\n```"),
    ]


def test_snippets_stand_in_full(page, tmp_path):
    (tmp_path / "part.py").write_text("size = 3\n")
    text = '```python\n--8<-- "part.py"\nprint(size)\n```\n'
    assert [cell.source for cell in notebook(page(text, root=tmp_path))] == ["size = 3\n\nprint(size)"]


def test_random_numbers_begin_as_on_the_page(page):
    found = cells(page, seeded=["torch", "sympy", "numpy"])
    assert found[1] == ("code", "import torch\nimport numpy\n\ntorch.manual_seed(0)\nnumpy.random.seed(0)")
    assert found[0][0] == "markdown"


def test_a_title_and_a_kind_name_what_was_folded(page):
    text = '??? tip\n    a\n\n!!! note ""\n    b\n\n=== "Tab"\n\n    c\n'
    assert cells(page, text) == [("markdown", "**Tip**\n\na\n\n\nb\n\n**Tab**\n\n\nc")]


def test_an_empty_page_is_an_empty_notebook(page):
    assert cells(page, "") == []


def test_the_files_are_valid_and_hold_no_results(page):
    text = as_ipynb(notebook(page(PAGE)))
    nbformat.validate(json.loads(text))
    read = nbformat.reads(text, as_version=4)
    assert [cell.outputs for cell in read.cells if cell.cell_type == "code"] == [[]] * 4
    assert text == as_ipynb(notebook(page(PAGE)))
    assert not re.search(r"claim:|cite:|--8<--|\?\?\?|!!!", text + as_percent(notebook(page(PAGE))))


@pytest.mark.slow
def test_a_notebook_runs_and_an_expected_exception_is_no_failure(page):
    made = nbformat.reads(as_ipynb(notebook(page(PAGE))), as_version=4)
    NotebookClient(made, timeout=120).execute()
    outputs = [cell.outputs for cell in made.cells if cell.cell_type == "code"]
    assert outputs[0][0].text == "24\n"
    assert outputs[2][0].ename == "ZeroDivisionError"

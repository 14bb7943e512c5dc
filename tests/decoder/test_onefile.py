import ast
import subprocess
import sys

import pytest

from decoder.onefile import MODULES, module_sources, one_file


def test_it_runs_alone_in_an_empty_folder(tmp_path):
    program = tmp_path / "architecture.py"
    program.write_text(one_file(), encoding="utf-8")
    run = subprocess.run([sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "18 of 18 checks hold.\n100,092,672 parameters in the default design\n" in run.stdout
    assert "FAILED" not in run.stdout


def test_it_imports_the_standard_library_and_torch_only():
    roots = set()
    for node in ast.walk(ast.parse(one_file())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add(node.module.split(".")[0])
    assert roots - set(sys.stdlib_module_names) == {"torch"}


def test_every_definition_of_every_module_is_in_it():
    text = one_file()
    for name, source in module_sources().items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                imports = [
                    inner.lineno - 1
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.ImportFrom) and inner.module.startswith("decoder.")
                ]
                written = source.splitlines()[node.lineno - 1 : min([node.end_lineno, *imports])]
                assert "\n".join(written) in text, f"{name}.{node.name}"
    assert text.count("from __future__ import annotations") == 1
    assert [line for line in text.splitlines() if line.removeprefix("# ") in MODULES] == [f"# {m}" for m in MODULES]


def test_imports_are_merged_and_own_ones_fall_away():
    text = one_file({
        "a": '"""First."""\nimport math\nfrom torch import nn\n\nx = 1\n',
        "b": "import math\nfrom torch import Tensor\nfrom decoder.a import (\n    x,\n)\n\ny = x\n",
    })  # fmt: skip
    assert text.count("import math") == 1
    assert "from torch import Tensor, nn\n" in text
    assert "decoder.a" not in text and text.endswith("y = x\n")
    assert "# First." in text


def test_the_marks_of_sections_fall_away():
    text = one_file({"a": "# --8<-- [start:x]\nx = 1\n# --8<-- [end:x]\n# kept\ny = 2\n"})
    assert text.endswith("\nx = 1\n# kept\ny = 2\n")
    assert "8<" not in one_file()


def test_an_import_inside_a_function_says_where_to_find_it():
    text = one_file({"a": "def f():\n    from decoder.survey import (\n        g,\n    )\n\n    return g()\n"})
    scope = {}
    exec(compile(text, "one", "exec"), scope)
    with pytest.raises(ValueError, match=r"^decoder.survey is part of the package decoder, not of this file$"):
        scope["f"]()


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"a": "x = 1\n", "b": "\nx = 2\n"}, "b.py:2: x is already defined in a.py"),
        ({"a": "def f(): ...\n", "b": "class f: ...\n"}, "b.py:1: f is already defined in a.py"),
        ({"a": "x = 1\n", "b": "from decoder.a import x as y\n"}, "b.py:1: an import between modules must not rename"),
    ],
)
def test_what_would_mean_something_else_in_one_file_is_refused(sources, message):
    with pytest.raises(ValueError) as refusal:
        one_file(sources)
    assert str(refusal.value) == message

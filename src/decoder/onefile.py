"""The decoder as one file: its modules in reading order, for a reader with torch and nothing else.

The imports of all modules come first, each once; those between the modules fall away, since every name is then at
hand. Everything else stays as written.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from pathlib import Path

MODULES = (
    "validate", "config", "norms", "positions", "cache", "attention", "feedforward", "block", "model", "generate",
    "losses", "training", "check",
)  # fmt: skip

SECTION = re.compile(r"\s*# --8<-- \[(?:start|end):")  # marks a stretch that a page of the book shows

HEADER = '''"""A decoder with every design choice as a named option, in one file. It needs Python 3.11 and torch.

    python architecture.py

runs the self-check. Made from the modules of the package ``decoder``; edit those, not this.
"""

from __future__ import annotations
'''


def module_sources() -> dict[str, str]:
    """The text of each module in `MODULES`."""
    folder = Path(__file__).parent
    return {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in MODULES}


def one_file(sources: Mapping[str, str] | None = None) -> str:
    """One program from ``sources`` (module name to text, in order), by default the package's own.

    An import of another module of the package inside a function becomes a ValueError that says where to find it.
    Raises ValueError, naming the module and the line, for what would mean something else in one file: a name that
    two modules define, or an import that renames.
    """
    sources = module_sources() if sources is None else sources
    imports: dict[str, set[str]] = {}  # module: the names taken from it; "" for the module itself
    owners: dict[str, str] = {}  # top-level name: the module that defines it
    sections = []
    for name, text in sources.items():
        tree = ast.parse(text)
        lines = text.splitlines()
        dropped = {number for number, line in enumerate(lines, 1) if SECTION.match(line)}
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                _collect(node, name, imports)
                dropped.update(_lines(node))
            for defined in _names(node):
                if owners.setdefault(defined, name) != name:
                    raise ValueError(f"{name}.py:{node.lineno}: {defined} is already defined in {owners[defined]}.py")
        for inner in ast.walk(tree):
            if isinstance(inner, ast.ImportFrom) and _is_own(inner.module) and inner.lineno not in dropped:
                message = f"{inner.module} is part of the package decoder, not of this file"
                lines[inner.lineno - 1] = f"{' ' * inner.col_offset}raise ValueError({message!r})"
                dropped.update(_lines(inner)[1:])
        docstring = ast.get_docstring(tree) or ""
        if docstring:
            dropped.update(_lines(tree.body[0]))
        body = "\n".join(line for number, line in enumerate(lines, 1) if number not in dropped).strip("\n")
        sections.append(f"{_heading(name, docstring)}\n\n{body}\n")
    return "\n\n".join([f"{HEADER}\n{_import_lines(imports)}\n", *sections])


def _is_own(module: str | None) -> bool:
    return (module or "").split(".")[0] == "decoder"


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _collect(node: ast.Import | ast.ImportFrom, name: str, imports: dict[str, set[str]]) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            imports.setdefault(alias.name if alias.asname is None else f"{alias.name} as {alias.asname}", set()).add("")
    elif _is_own(node.module):
        if any(alias.asname for alias in node.names):
            raise ValueError(f"{name}.py:{node.lineno}: an import between modules must not rename")
    elif node.module != "__future__":
        imports.setdefault(node.module or "", set()).update(ast.unparse(alias) for alias in node.names)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _heading(name: str, docstring: str) -> str:
    rule = "# " + "-" * 118
    words = "\n".join(f"# {line}".rstrip() for line in docstring.splitlines())
    return f"{rule}\n# {name}\n#\n{words}\n{rule}"


def _import_lines(imports: dict[str, set[str]]) -> str:
    whole = [f"import {module}" for module in sorted(imports) if "" in imports[module]]
    parts = [f"from {m} import {', '.join(sorted(imports[m] - {''}))}" for m in sorted(imports) if imports[m] - {""}]
    standard = [line for line in whole + parts if line.split()[1].split(".")[0] in sys.stdlib_module_names]
    others = [line for line in whole + parts if line not in standard]
    return "\n".join([*standard, "", *others])

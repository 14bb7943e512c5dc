"""The rooms of the house: what imports what. Imports inside functions count for the rooms, not for circles."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
ENGINES = {"mkdocs", "mkdocs_jupyter", "material", "zensical"}


def module(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.Module, deep: bool) -> Iterator[str]:
    """What a module imports, ``deep`` in its functions too; not what only a type checker sees."""
    nodes = list(ast.walk(tree)) if deep else tree.body
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def faults(root: Path) -> list[str]:
    """Imports across rooms, and circles of imports."""
    trees = {module(path, root): ast.parse(path.read_text("utf-8")) for path in sorted(root.rglob("*.py"))}
    found = []
    for name, tree in trees.items():
        tops = {each.partition(".")[0] for each in imported(tree, deep=True)}
        other = {"decoder": "claims", "claims": "decoder"}[name.partition(".")[0]]
        if other in tops:
            found.append(f"{name} imports {other}")
        if engines := sorted(ENGINES & tops if not name.startswith("claims.mkdocs_") else ()):
            found.append(f"{name} imports {', '.join(engines)}")
    order = graphlib.TopologicalSorter(
        {name: {each for each in imported(tree, deep=False) if each in trees} for name, tree in trees.items()}
    )
    try:
        order.prepare()
    except graphlib.CycleError as error:
        found.append(f"a circle: {' -> '.join(error.args[1])}")
    return found


def test_nothing_is_imported_across_rooms_or_in_circles() -> None:
    assert faults(SOURCE) == []


def test_each_fault_is_found(tmp_path: Path) -> None:
    texts = {
        "claims/a.py": "from claims import b\nimport mkdocs.config\n",
        "claims/b.py": "import claims.a\n\n\ndef f():\n    from decoder import c\n",
        "claims/mkdocs_plugin.py": "import mkdocs\n",
        "decoder/c.py": "import claims.a\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    *rooms, circle = faults(tmp_path)
    assert rooms == ["claims.a imports mkdocs", "claims.b imports decoder", "decoder.c imports claims"]
    assert circle in ("a circle: claims.a -> claims.b -> claims.a", "a circle: claims.b -> claims.a -> claims.b")

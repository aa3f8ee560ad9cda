"""Which file of the package imports which, read from the source: at the top, in functions, for type checkers alike."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "vcpo_bench"
NOT_SHIPPED = {"tests", "docs", "examples", "notebooks", "tools", "build", "dist", "results", "noxfile", "setup"}
"""Folders and files of a checkout that are not part of the package."""


@dataclass(frozen=True)
class SourceFile:
    """One file of the package.

    Attributes:
        name: Dotted name inside the package, such as `bench.policies.base`; that of a folder is its `__init__.py`.
        path: Where it is.
        imports: Names of the other files it imports.
        libraries: First names of everything else it imports, the standard library included.
    """

    name: str
    path: Path
    imports: frozenset[str]
    libraries: frozenset[str]


def read_package(root: Path) -> dict[str, SourceFile]:
    """Every Python file of the package by name."""
    paths = {module_name(path, root): path for path in sorted(root.rglob("*.py")) if _is_shipped(path, root)}
    return {name: _read(name, path, paths) for name, path in paths.items()}


def module_name(path: Path, root: Path) -> str:
    """Dotted name of a file inside the package; empty for the package's own `__init__.py`."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_shipped(path: Path, root: Path) -> bool:
    first = path.relative_to(root).parts[0].removesuffix(".py")
    return first not in NOT_SHIPPED and not first.startswith(".") and not (root / first / "pyvenv.cfg").exists()


def _read(name: str, path: Path, known: Mapping[str, Path]) -> SourceFile:
    imports, libraries = set[str](), set[str]()
    for target in imported_names(ast.parse(path.read_text())):
        first, _, rest = target.partition(".")
        if first != PACKAGE:
            libraries.add(first)
        elif (found := _file_of(rest, known)) != name:
            imports.add(found)
    return SourceFile(name, path, frozenset(imports), frozenset(libraries))


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all that a source imports, those of `from a import b` as `a.b`.

    Raises:
        ValueError: It imports relatively, which says less than a full name.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"relative import on line {node.lineno}")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _named_in_call(node)


def _named_in_call(call: ast.Call) -> Iterator[str]:
    """The name that `import_module("...")` imports, where it is written out."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0] if call.args else None
    if name in ("import_module", "__import__") and isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value


def _file_of(dotted: str, known: Mapping[str, Path]) -> str:
    """The longest beginning of a dotted name that is a file; the rest are names inside that file."""
    while dotted not in known:
        dotted = dotted.rpartition(".")[0]
    return dotted


def cycles(graph: Mapping[str, frozenset[str] | set[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other, each in alphabetical order (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in order:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], order[target])
        if lowest[node] == order[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in order:
            visit(node)
    return sorted(found)

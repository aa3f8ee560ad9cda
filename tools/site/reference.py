"""One page for every package: what can be imported from it, then its modules with their docstrings."""

import ast
from pathlib import Path, PurePosixPath

PACKAGE = Path(__file__).resolve().parents[2] / ".types" / "vcpo_bench"
NO_LIBRARY = {"__init__", "__main__", "cli", "commands"}  # `vcpo-bench VERB --help` describes the commands


def pages() -> dict[str, str]:
    """Text of every page, by address."""
    tops = [path for path in sorted(PACKAGE.iterdir()) if path.is_dir() and path.name not in NO_LIBRARY]
    rooms = [init.parent for top in tops for init in sorted(top.rglob("__init__.py"))]
    return {
        str(PurePosixPath("reference") / room.relative_to(PACKAGE) / "index.md"): page(room)
        for room in (PACKAGE, *rooms)
    }


def name_of(path: Path) -> str:
    """Dotted name of a package or module."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)


def page(room: Path) -> str:
    """The page of one package."""
    modules = [path for path in sorted(room.glob("*.py")) if path.stem not in NO_LIBRARY]
    name = name_of(room)
    lines = [f"# {name}", "", *directive(name, "show_root_heading: false", "members: false")]
    exported = exports(room / "__init__.py")
    if exported:
        names = ", ".join(reference(*each) for each in sorted(exported.items()))
        lines += [f"From `{name}` can be imported: {names}.", ""]
    for module in modules:
        if not module.stem.startswith("_"):
            lines += directive(name_of(module))
    return "\n".join(lines)


def directive(name: str, *options: str) -> list[str]:
    """The block that mkdocstrings turns into the documentation of a name."""
    return [f"::: {name}", *(["    options:", *(f"      {option}" for option in options)] if options else []), ""]


def reference(name: str, target: str) -> str:
    """A name that leads to its documentation, if it has one: constants without a docstring have none."""
    return f'<autoref identifier="{target}" optional>`{name}`</autoref>'


def exports(init: Path) -> dict[str, str]:
    """Names that a package's `__init__` takes from its modules, and where each is defined."""
    nodes = [node for node in ast.parse(init.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    own = [node for node in nodes if (node.module or "").startswith("vcpo_bench.")]
    return {alias.name: f"{node.module}.{alias.name}" for node in own for alias in node.names}

"""The menu: every page in the section of its folder."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

HOME = "index.md"
METHODS = ["gallery.md", "methods.md"]
FOLDERS = {"Notebooks": "notebooks/", "Studies": "studies/", "Benchmarks": "benchmarks/", "Project": "project/"}
REFERENCE = PurePosixPath("reference")


def menu(pages: Sequence[str]) -> list[dict[str, Any]]:
    """The menu over these pages, given by address."""
    guides = [page for page in pages if "/" not in page and page not in (HOME, *METHODS)]
    sections = {title: [page for page in pages if page.startswith(folder)] for title, folder in FOLDERS.items()}
    menu: dict[str, Any] = {"Home": HOME, "Guides": guides, "Methods": METHODS} | sections
    menu["Reference"] = rooms(pages, REFERENCE)
    return [{title: what} for title, what in menu.items() if what]


def rooms(pages: Sequence[str], folder: PurePosixPath) -> list[Any]:
    """The page of one package, then its sub-packages under their short names."""
    entries: list[Any] = [str(folder / "index.md")]
    for page in pages:
        path = PurePosixPath(page)
        if path.name == "index.md" and path.parent.parent == folder:
            inside = rooms(pages, path.parent)
            entries.append({path.parent.name: inside if len(inside) > 1 else inside[0]})
    return entries

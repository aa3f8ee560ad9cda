"""The menu: the guides in the chapters of `docs/index.md`, every other page in the section of its folder."""

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

HOME = "index.md"
FOLDERS = {"Notebooks": "notebooks/", "Studies": "studies/", "Benchmarks": "benchmarks/", "Project": "project/"}
REFERENCE = PurePosixPath("reference")
LINK = re.compile(r"\]\(([a-z_]+\.md)\)")


def chapters(home: str) -> dict[str, list[str]]:
    """The guides that the home page links to, by its headings."""
    parts = re.split(r"^## (.+)$", home, flags=re.MULTILINE)[1:]
    found = {title: LINK.findall(text) for title, text in zip(parts[::2], parts[1::2], strict=True)}
    return {title: guides for title, guides in found.items() if guides}


def menu(pages: Sequence[str], guides: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The menu over these pages, given by address; guides that no chapter has stand at the end of the guides."""
    placed = {HOME, *(page for chapter in guides.values() for page in chapter)}
    rest = [page for page in pages if "/" not in page and page not in placed]
    sections = {title: [page for page in pages if page.startswith(folder)] for title, folder in FOLDERS.items()}
    own = [{title: list(chapter)} for title, chapter in guides.items()]
    menu: dict[str, Any] = {"Home": HOME, "Guides": [*own, *rest]} | sections
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

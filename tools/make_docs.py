"""Writes every page that follows from the code, or from the tables of studies.

python tools/make_docs.py            # writes those that are stale
python tools/make_docs.py --check    # names them instead, and fails if there are any
"""

import sys
from collections.abc import Callable
from pathlib import Path

from doc_pages import adapters, advice, columns, commands, methods

import studies.pages

ROOT = Path(__file__).resolve().parents[1]
PAGES: dict[str, Callable[[], str]] = {
    "docs/methods.md": methods.page,
    "docs/columns.md": columns.page,
    "docs/commands.md": commands.page,
    "docs/trl.md": adapters.trl_page,
    "docs/verl.md": adapters.verl_page,
    "docs/loss_paths.md": adapters.loss_paths_page,
    "methods/assembly/geometry.tsv": methods.geometry,
    "analysis/advice/tolerated.csv": advice.tolerated,
    "analysis/advice/earned.csv": advice.earned,
    "analysis/advice/facts.csv": advice.facts,
    **studies.pages.pages(),
}
"""Path from the root, and what makes the text."""


def main(check: bool) -> int:
    """Write or name the stale pages; returns the exit status."""
    made = {ROOT / path: page() for path, page in PAGES.items()}
    stale = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        print(path.relative_to(ROOT), "is stale" if check else "written")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[path], encoding="utf-8")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

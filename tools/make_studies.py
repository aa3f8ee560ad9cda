"""Writes the pages that are made of the studies' tables: README.md, docs/findings.md, docs/studies/NAME/README.md.

python tools/make_studies.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from studies.pages import render_all


def main() -> None:
    """Write every page."""
    for page, text in render_all().items():
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)


if __name__ == "__main__":
    main()

"""The index of the documentation leads to every page."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_every_page_is_linked_from_the_index() -> None:
    linked = set(re.findall(r"\]\(([^)#]+)", (DOCS / "index.md").read_text()))
    pages = [
        *DOCS.glob("*.md"),
        *DOCS.glob("benchmarks/*.md"),
        *DOCS.glob("studies/*.md"),
        *DOCS.glob("studies/*/README.md"),
    ]
    assert not {str(page.relative_to(DOCS)) for page in pages} - linked - {"index.md"}

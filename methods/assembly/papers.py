"""Titles and authors of the papers that methods name by their arXiv number."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("papers.tsv")


class Paper(NamedTuple):
    """What arXiv says of a paper.

    Attributes:
        title: Title, as BibTeX reads it.
        authors: Authors joined by `and`, as BibTeX reads them: a team in braces; more than 40 end in `others`.
    """

    title: str
    authors: str


@cache
def known_papers() -> dict[str, Paper]:
    """By arXiv number; a method may name a paper that is not here."""
    _, *rows = TABLE.read_text(encoding="utf-8").splitlines()
    return {number: Paper(title, authors) for number, title, authors in (row.split("\t") for row in rows)}

"""What a file of `sections/` declares to become a section of the report."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """Title and position of a section; a file of `sections/` holds it under the name `PLACE`, beside `blocks`.

    Attributes:
        title: Heading of the section.
        order: Position in the report. The sections that ship stand at 10, 20, ..., so that another fits between them.
        folded: The page shows its heading only, until it is opened.
    """

    title: str
    order: int
    folded: bool = True

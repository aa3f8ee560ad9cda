"""What a section of the report is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.study import Study

Blocks = Callable[[Study, Ledger], list[Block]]


class ReportSection(NamedTuple):
    """A section of the report; a file of `sections/` holds some in a tuple `SECTIONS`.

    Attributes:
        anchor: Where links to it lead, unique.
        title: Its heading.
        order: Position in the report. The sections that ship stand at 10, 20, ..., so that another fits between them.
        blocks: What it shows of a study; numbers are entered into the ledger. None: it is left out.
        folded: The page shows its heading only, until it is opened.
    """

    anchor: str
    title: str
    order: int
    blocks: Blocks
    folded: bool = True

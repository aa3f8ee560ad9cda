"""What a published fact is here, and what a verdict on it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from .cells import Block

if TYPE_CHECKING:
    from .tables import Tables

Verdict = Literal["reproduced", "refuted", "undecided", "cannot be tested here", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
NAN = float("nan")


@dataclass(frozen=True)
class Part:
    """The verdict on one part of a fact: one task, or one of its claims.

    Attributes:
        name: Which part.
        verdict: One of `VERDICTS`.
        figure: What was measured, in words and numbers.
        value: The number the rule judges; NaN where there is none.
        low: Lower end of its 95% interval; NaN where there is none.
        high: Upper end.
        unit: What the interval is over.
    """

    name: str
    verdict: Verdict
    figure: str
    value: float = NAN
    low: float = NAN
    high: float = NAN
    unit: str = ""


Judge = Callable[["Tables"], list[Part]]
Note = Callable[["Tables"], str]


@dataclass(frozen=True)
class Fact:
    """A published fact with the rule that was registered for it.

    Attributes:
        number: Its number in the scorecard.
        title: A few words, for the summary and the heading.
        order: Place in the order of runs; lower is more important.
        statement: What was published.
        source: Where.
        rule: When a part counts as reproduced and when as refuted; otherwise it is undecided.
        judge: The rule as code: from the shipped tables alone, called when all runs are there.
        blocks: The runs it rests on; none: it takes its verdict from `pages`.
        pages: Tables of other studies it rests on, relative to `docs/`.
        signals: Whether it needs the per-update table of its runs.
        note: Markdown for the page, from the tables alone, that judges nothing; called when all runs are there.
    """

    number: int
    title: str
    order: int
    statement: str
    source: str
    rule: str
    judge: Judge
    blocks: tuple[Block, ...] = ()
    pages: tuple[str, ...] = ()
    signals: bool = False
    note: Note | None = None

    def parts(self, tables: Tables) -> list[Part]:
        """The verdicts on its parts; a single `not run` while runs or a table are missing."""
        missing = tables.missing(self.blocks)
        if missing:
            return [Part("all", "not run", f"{missing} runs are missing" if missing > 1 else "1 run is missing")]
        if absent := [page for page in self.pages if not tables.page_exists(page)]:
            return [Part("all", "not run", f"no table yet: {', '.join(absent)}")]
        return self.judge(tables)


def combined(parts: Sequence[Part]) -> Verdict:
    """The verdict on a fact: where testable parts disagree, or one is open, it is undecided."""
    verdicts = {part.verdict for part in parts}
    testable: list[Verdict] = [verdict for verdict in VERDICTS[:3] + VERDICTS[4:] if verdict in verdicts]
    if not testable:
        return "cannot be tested here"
    return testable[0] if len(testable) == 1 else "not run" if "not run" in testable else "undecided"

"""What will be run and by which rules: the tables of the registration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vcpo_bench.bench.cells.grid import PlannedCell

from .cells import minutes, planned
from .fact import Fact


@dataclass(frozen=True)
class Stage:
    """The runs that a fact adds to those of the facts before it."""

    fact: Fact
    cells: tuple[PlannedCell, ...]
    shared: int

    @property
    def updates(self) -> int:
        """Updates of the runs it adds."""
        return sum(cell.updates for cell in self.cells)


def stages(facts: Sequence[Fact]) -> list[Stage]:
    """Fact after fact in the order of their runs; a run that several need is made for the first."""
    known: set[str] = set()
    found = []
    for fact in facts:
        own = planned(fact.blocks)
        found.append(Stage(fact, tuple(cell for key, cell in own.items() if key not in known), len(known & set(own))))
        known |= set(own)
    return found


def plan_table(facts: Sequence[Fact]) -> str:
    """Runs and cost, in order."""
    lines = ["| order | fact | runs it adds | runs it shares | updates | core-minutes |", "|---" * 6 + "|"]
    added = [stage for stage in stages(facts) if stage.fact.blocks]
    for place, stage in enumerate(added, start=1):
        cost = f"{minutes(stage.cells):.1f}"
        row = (str(place), str(stage.fact.number), str(len(stage.cells)), str(stage.shared), str(stage.updates), cost)
        lines.append(f"| {' | '.join(row)} |")
    total = [cell for stage in added for cell in stage.cells]
    updates = sum(stage.updates for stage in added)
    lines.append(f"| | all | {len(total)} | | {updates} | {minutes(total):.1f} |")
    return "\n".join(lines) + "\n"


def rule_table(facts: Sequence[Fact]) -> str:
    """What was published, and the rule of each verdict, by number."""
    lines = ["| | published | source | rule |", "|---" * 4 + "|"]
    by_number = sorted(facts, key=lambda fact: fact.number)
    lines += [f"| {fact.number} | {fact.statement} | {fact.source} | {fact.rule} |" for fact in by_number]
    return "\n".join(lines) + "\n"

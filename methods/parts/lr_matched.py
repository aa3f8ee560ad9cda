"""A control: the mean step scale of another method at every update."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods.core.borrowed_step import BorrowedStep


@dataclass(frozen=True, kw_only=True)
class LrMatched(BorrowedStep):
    """The mean step scale of another method at every update: smaller steps, but not at its times."""

    name: ClassVar[str] = "lr-matched"
    summary: ClassVar[str] = "control: every step scaled by the mean scale of another method's run"
    reference: ClassVar[str] = "control of this project"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "scale = mean of the scales of the cell of `to`"

    def arrange(self, values: list[float], rng_seed: int) -> tuple[float, ...]:
        """One number."""
        return (sum(values) / len(values),)

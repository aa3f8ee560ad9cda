"""The base class of step rules that use the step scales of another cell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.errors import MissingEvidence
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import expression


@dataclass(frozen=True, kw_only=True)
class BorrowedStep(Step):
    """A step rule that needs the step scales of another cell, which `with_series` gives it.

    `needs_series` is the canonical expression of that cell: same task, lag, learning rate and seed.
    """

    to: str = expression("vcpo")
    series: tuple[float, ...] = field(default=())

    @property
    def needs(self) -> frozenset[str]:
        """The position in the series is kept as state."""
        return frozenset({"state"})

    @property
    def needs_series(self) -> str:
        """Expression of the cell to run first."""
        return self.to

    def with_series(self, values: Sequence[float], rng_seed: int) -> BorrowedStep:
        """The same rule, carrying the other cell's step scales.

        Args:
            values: Its step scales, one per update, in order.
            rng_seed: Seed of the order, where there is one.

        Raises:
            MissingEvidence: For an empty series.
        """
        if not len(values):
            raise MissingEvidence(f"{self.name} was given an empty series of step scales")
        return replace(self, series=self.arrange([float(value) for value in values], rng_seed))

    @abstractmethod
    def arrange(self, values: list[float], rng_seed: int) -> tuple[float, ...]:
        """The scales in the order they will be used."""

    def scale(self, ev: EvidenceView) -> Tensor:
        """Leading shape: the next scale; the series starts again when it is used up.

        Raises:
            MissingEvidence: No series was given.
        """
        if not self.series:
            raise MissingEvidence(
                f"{self.name} needs the step scales of {self.to}: run that cell first and pass them to with_series"
            )
        logp = ev.batch.logp
        before = ev.batch.state.get(f"{self.name}.used")
        used = torch.zeros((), dtype=torch.int64, device=logp.device) if before is None else before
        ev.state[f"{self.name}.used"] = used + 1
        value = self.series[int(used) % len(self.series)]
        return torch.full(ev.batch.leading, value, dtype=logp.dtype, device=logp.device)

"""Step rules from the lag, and the two controls that borrow the step scales of another method."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.errors import MissingEvidence
from vcpo_bench.methods.core.interfaces import Step
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.naming.parameters import choice, expression


@dataclass(frozen=True, kw_only=True)
class LagStep(Step):
    """scale = 1 / (1 + lag), or its square root (staleness-aware SGD 1511.05950).

    The lag is the largest or the mean one over the rows in play, in optimizer updates; no row means no step.
    """

    name: ClassVar[str] = "inverse-lag"
    summary: ClassVar[str] = "step divided by 1 + lag"
    reference: ClassVar[str] = "staleness-aware SGD 1511.05950"
    year: ClassVar[int] = 2015
    formula: ClassVar[str] = "scale = (1 + lag)^-1, or ^-1/2"
    host: ClassVar[str] = "reinforce"
    rule: str = choice("linear", "sqrt")
    of: str = choice("max", "mean")

    def scale(self, ev: Evidence) -> Tensor:
        """Leading shape, in [0, 1]."""
        rows = ev.rows & ev.mask.any(-1)
        lag = torch.where(rows, ev.batch.lag(), 0).to(ev.batch.logp.dtype).clamp(min=0)
        count = rows.sum((-2, -1))
        value = lag.amax((-2, -1)) if self.of == "max" else lag.sum((-2, -1)) / count.clamp(min=1)
        scale = 1 / (1 + value)
        return torch.where(count > 0, scale.sqrt() if self.rule == "sqrt" else scale, 0.0)


@dataclass(frozen=True, kw_only=True)
class LagSqrtStep(LagStep):
    """scale = 1 / sqrt(1 + lag)."""

    name: ClassVar[str] = "inverse-sqrt-lag"
    summary: ClassVar[str] = "step divided by the square root of 1 + lag"
    rule: str = choice("sqrt", "linear")


@dataclass(frozen=True, kw_only=True)
class Borrowed(Step):
    """A step rule that needs the step scales of another cell, handed over as data by `with_series`.

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

    def with_series(self, values: Sequence[float], rng_seed: int) -> "Borrowed":
        """The same rule, carrying the other cell's step scales.

        Args:
            values: Its step scales, one per update, in order.
            rng_seed: Seed of the order, where there is one.

        Raises:
            MissingEvidence: For an empty series.
        """
        if not len(values):
            raise MissingEvidence(f"{self.name} was handed an empty series of step scales")
        return replace(self, series=self.arrange([float(value) for value in values], rng_seed))

    def arrange(self, values: list[float], rng_seed: int) -> tuple[float, ...]:
        """The scales in the order they will be used."""
        raise NotImplementedError(f"{type(self).__name__} must define arrange()")

    def scale(self, ev: Evidence) -> Tensor:
        """Leading shape: the next scale; the series starts again when it is used up.

        Raises:
            MissingEvidence: When no series was handed over.
        """
        if not self.series:
            raise MissingEvidence(f"{self.name} needs the step scales of {self.to}: run that cell and hand them over")
        logp = ev.batch.logp
        before = ev.batch.state.get(f"{self.name}.used")
        used = torch.zeros((), dtype=torch.int64, device=logp.device) if before is None else before
        ev.state[f"{self.name}.used"] = used + 1
        value = self.series[int(used) % len(self.series)]
        return torch.full(ev.batch.leading, value, dtype=logp.dtype, device=logp.device)


@dataclass(frozen=True, kw_only=True)
class LrMatched(Borrowed):
    """The mean step scale of another method at every update: smaller steps, but not timed by it."""

    name: ClassVar[str] = "lr-matched"
    summary: ClassVar[str] = "control: every step scaled by the mean scale of another method's run"
    reference: ClassVar[str] = "control of this project"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "scale = mean of the scales of the cell of `to`"

    def arrange(self, values: list[float], rng_seed: int) -> tuple[float, ...]:
        """One number."""
        return (sum(values) / len(values),)


@dataclass(frozen=True, kw_only=True)
class LrShuffled(Borrowed):
    """The step scales of another method in random order: the same sizes, timed by chance."""

    name: ClassVar[str] = "lr-shuffled"
    summary: ClassVar[str] = "control: the step scales of another method's run in random order"
    reference: ClassVar[str] = "control of this project"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "scale = a permutation of the scales of the cell of `to`"

    def arrange(self, values: list[float], rng_seed: int) -> tuple[float, ...]:
        """A permutation drawn with the seed."""
        generator = torch.Generator().manual_seed(rng_seed)
        return tuple(values[place] for place in torch.randperm(len(values), generator=generator).tolist())

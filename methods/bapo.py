"""Balanced policy optimization with adaptive clipping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import RatioMethod
from vcpo_bench.methods.core.batch import BATCH_AXES
from vcpo_bench.methods.core.clipping import differentiated
from vcpo_bench.methods.core.masking import choose, within
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Bapo(RatioMethod):
    """Dual clip whose bounds are searched on every batch (BAPO 2510.18927, algorithm 1).

    Starting from [low, high], the lower bound and then the upper one are raised by `step` until the positive
    tokens contribute at least `target` times what the negative ones do. Without negative contribution the bounds
    stay where they start.
    """

    name: ClassVar[str] = "bapo"
    summary: ClassVar[str] = "dual clip, bounds raised until positive tokens balance negative ones"
    reference: ClassVar[str] = "BAPO 2510.18927"
    year: ClassVar[int] = 2025
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A r, 0 where A>0 and r>hi, A<0 and r<lo, A<0 and r>cap; (lo, hi) searched"
    target: float = number(1.0, minimum=0)
    low: float = number(0.6, minimum=0)
    low_max: float = number(0.9, minimum=0)
    high: float = number(1.2, minimum=0)
    high_max: float = number(3.0, minimum=0)
    step: float = number(0.05, minimum=1e-3)
    cap: float = number(3.0, minimum=1)

    def terms(self, ev: EvidenceView) -> Terms:
        """The clipped ratio under the searched bounds."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        low, high = self.bounds(ev, ratio)
        negative = ev.advantage < 0
        above = torch.where(ev.advantage > 0, high, choose(negative, self.cap, torch.inf, ratio.dtype))
        below = torch.where(negative, low, -torch.inf)
        return differentiated(ratio, within(ratio, below, above), ev.pair("current", self.anchor).beyond(self.clamp))

    def bounds(self, ev: EvidenceView, ratio: Tensor) -> tuple[Tensor, Tensor]:
        """`[..., 1, 1, 1]` the searched lower and upper bound."""
        signal = ev.advantage * ev.rows.mask_float
        gain, loss = signal.clamp(min=0), signal.clamp(max=0).neg_()
        lows, highs = _grid(self.low, self.low_max, self.step), _grid(self.high, self.high_max, self.step)

        def negative(low: float) -> Tensor:
            return (loss * ratio.clamp(min=low)).sum(BATCH_AXES)

        def positive(high: float) -> Tensor:
            return (gain * ratio.clamp(max=high)).sum(BATCH_AXES)

        start = positive(highs[0])
        low, last, settled = _first(lows, negative, lambda worst: (start >= self.target * worst) | (worst <= 0))
        high = torch.full_like(low, highs[0])
        if not bool(settled.all()):
            raised, _, _ = _first(highs, positive, lambda best: best >= self.target * last)
            high = torch.where(settled, high, raised)
        return low[..., None, None, None], high[..., None, None, None]


def _grid(start: float, stop: float, step: float) -> list[float]:
    """From `start` in steps until `stop` is reached or passed."""
    values = [start]
    while values[-1] < stop - 1e-9:
        values.append(values[-1] + step)
    return values


def _first(
    candidates: list[float], contribution: Callable[[float], Tensor], enough: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """The first candidate whose contribution is enough, else the last; its contribution; and whether it was enough."""
    value = contribution(candidates[0])
    settled = enough(value)
    chosen = torch.full_like(value, candidates[0])
    for candidate in candidates[1:]:
        if bool(settled.all()):
            break
        value = torch.where(settled, value, contribution(candidate))
        chosen = torch.where(settled, chosen, candidate)
        settled = settled | enough(value)
    return chosen, value, settled

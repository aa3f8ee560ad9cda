"""Balanced policy optimization with adaptive clipping."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.clip import differentiated
from vcpo_bench.methods.evidence import BATCH_AXES, Evidence
from vcpo_bench.methods.method import RatioMethod, Terms
from vcpo_bench.methods.params import number


@dataclass(frozen=True, kw_only=True)
class Bapo(RatioMethod):
    """Dual clip whose bounds are searched on every batch (BAPO 2510.18927, algorithm 1).

    Starting from [low, high], the lower bound and then the upper one are raised by ``step`` until the positive
    tokens contribute at least ``target`` times what the negative ones do. Without negative contribution the bounds
    stay where they start.
    """

    name: ClassVar[str] = "bapo"
    summary: ClassVar[str] = "dual clip, bounds raised until positive tokens balance negative ones"
    reference: ClassVar[str] = "BAPO 2510.18927"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A r, 0 where A>0 and r>hi, A<0 and r<lo, A<0 and r>cap; (lo, hi) searched"
    target: float = number(1.0, minimum=0)
    low: float = number(0.6, minimum=0)
    low_max: float = number(0.9, minimum=0)
    high: float = number(1.2, minimum=0)
    high_max: float = number(3.0, minimum=0)
    step: float = number(0.05, minimum=1e-3)
    cap: float = number(3.0, minimum=1)

    def terms(self, ev: Evidence) -> Terms:
        """The clipped ratio under the searched bounds."""
        ratio = ev.ratio("current", self.anchor, self.clamp)
        low, high = self.bounds(ev, ratio)
        negative = ev.advantage < 0
        above = torch.where(ev.advantage > 0, high, torch.where(negative, self.cap, torch.inf)).to(ratio.dtype)
        below = torch.where(negative, low, -torch.inf).to(ratio.dtype)
        return differentiated(ev, ratio, ev.within(ratio, below, above), ev.beyond("current", self.anchor, self.clamp))

    def bounds(self, ev: Evidence, ratio: Tensor) -> tuple[Tensor, Tensor]:
        """``[..., 1, 1, 1]`` the searched lower and upper bound."""
        signal = ev.advantage * ev.live
        gain, loss = signal.clamp(min=0), signal.clamp(max=0).abs()
        low = torch.full(signal.shape[:-3], self.low, dtype=ratio.dtype, device=ratio.device)[..., None, None, None]
        high = torch.full_like(low, self.high)
        positive = (gain * ratio.minimum(high)).sum(BATCH_AXES, keepdim=True)
        negative = (loss * ratio.maximum(low)).sum(BATCH_AXES, keepdim=True)
        tolerance = 1e-9
        while bool((going := (negative > 0) & (positive < self.target * negative)).any()):
            raise_low = going & (low < self.low_max - tolerance)
            raise_high = going & ~raise_low & (high < self.high_max - tolerance)
            if not bool((raise_low | raise_high).any()):
                break
            low = torch.where(raise_low, low + self.step, low)
            high = torch.where(raise_high, high + self.step, high)
            if bool(raise_high.any()):
                positive = (gain * ratio.minimum(high)).sum(BATCH_AXES, keepdim=True)
            if bool(raise_low.any()):
                negative = (loss * ratio.maximum(low)).sum(BATCH_AXES, keepdim=True)
        return low, high

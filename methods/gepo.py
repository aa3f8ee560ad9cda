"""Group expectation policy optimization."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.clip import or_beyond, outside
from vcpo_bench.methods.evidence import Evidence
from vcpo_bench.methods.method import RatioMethod, Terms
from vcpo_bench.methods.params import choice, number


@dataclass(frozen=True, kw_only=True)
class Gepo(RatioMethod):
    """Clip of p_i / E, p and q the length-normalised row probabilities, E the q-weighted mean of q (2508.17850).

    E = sum q^2 / sum q over the group. ``variant=plus`` uses the row's own q where the mean k3 of the row is below
    ``near``; ``variant=expected`` divides by the q-weighted mean of p instead, with its gradient. ``scope=batch`` takes the whole batch as one group, as the authors' trainer does with its micro-batch.
    """

    name: ClassVar[str] = "gepo"
    summary: ClassVar[str] = "row probability over the group's expected behavior probability, clipped"
    reference: ClassVar[str] = "GEPO 2508.17850"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "c = A p/E, 0 where clipped; p = exp(mean log pi), q = exp(mean log mu), E = sum q^2/sum q"
    low: float = number(0.2, minimum=0)
    high: float = number(0.2, minimum=0)
    scope: str = choice("group", "batch")
    variant: str = choice("plain", "plus", "expected")
    near: float = number(0.1, minimum=0)

    def terms(self, ev: Evidence) -> Terms:
        """The row's ratio to the group expectation."""
        raw = self._row_mean(ev, "current") - self._log_expectation(ev)
        raw = torch.where(ev.lengths > 0, raw, 0.0).unsqueeze(-1)
        ratio = raw.clamp(-self.clamp, self.clamp).exp()
        clipped = or_beyond(outside(ratio, ev.advantage, 1 - self.low, 1 + self.high), raw.abs() > self.clamp)
        return Terms(weight=ratio.expand(clipped.shape).masked_fill(clipped, 0.0), clipped=clipped)

    def _row_mean(self, ev: Evidence, policy: str) -> Tensor:
        field = {"current": "logp", "behavior": "behavior_logp", "proximal": "proximal_logp"}[policy]
        return ev.token_field(field).sum(-1) / ev.lengths.clamp(min=1)

    def _log_expectation(self, ev: Evidence) -> Tensor:
        """``[..., P, G]`` log E, by log-sum-exp."""
        own = self._row_mean(ev, self.anchor)
        log_q = torch.where(ev.lengths > 0, own, -torch.inf)
        axes = (-1,) if self.scope == "group" else (-2, -1)
        expected = torch.logsumexp(2 * log_q, axes, keepdim=True) - torch.logsumexp(log_q, axes, keepdim=True)
        if self.variant == "plain":
            return expected.expand_as(own)
        logs = ev.log_ratio("current", self.anchor, self.clamp)
        k3 = torch.where(ev.mask, torch.exp(-logs) - 1 + logs, 0.0).sum(-1) / ev.lengths.clamp(min=1)
        return torch.where(k3 < self.near, own, expected)

"""Masks by importance ratio: bands, divergences and vetoes, at token or row level."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.naming.parameters import choice, number


def log_of(bound: float) -> float:
    """Logarithm of a bound on a ratio, -inf for 0."""
    return math.log(bound) if bound > 0 else -math.inf


@dataclass(frozen=True, kw_only=True)
class RatioMask(Mask):
    """A mask that looks at one ratio; `of` and `anchor` name its numerator and denominator.

    Logarithms are clamped to `+-clamp`, those of products and means as a whole.
    """

    anchor: str = choice("behavior", "proximal")
    of: str = choice("current", "proximal")
    clamp: float = number(20.0, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The proximal policy, when it is in the ratio."""
        return frozenset({"proximal_logp"}) if "proximal" in (self.anchor, self.of) else frozenset()

    @property
    def anchors(self) -> dict[str, str]:
        """The ratio the mask looks at."""
        return {f"{self.name} mask": self.anchor if self.of == "current" else f"{self.of}/{self.anchor}"}


@dataclass(frozen=True, kw_only=True)
class Band(RatioMask):
    """Keep what has low <= ratio <= high: token by token, or rows by their product or geometric mean.

    Geometric-mean bands are narrow (verl 0.999..1.001, SkyRL 0.99..1.01, NeMo-RL 0.999..1.002), the others wide.
    `level=segment` takes the geometric mean over each run of tokens in play.
    """

    name: ClassVar[str] = "band"
    summary: ClassVar[str] = "rows with a geometric-mean ratio outside 0.99..1.01 rejected"
    reference: ClassVar[str] = "Liu, Li et al. 2025, 'When Speed Kills Stability'"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep where low <= ratio <= high"
    differences: ClassVar[tuple[str, ...]] = (
        "verl's new seq_mean_k1 bounds the mirrored ratio mu/theta; its 2025 option bounds theta/mu",
    )
    host: ClassVar[str] = "reinforce"
    level: str = choice("geometric", "token", "sequence", "segment")
    low: float = number(0.99, minimum=0)
    high: float = number(1.01, minimum=0)

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1|T]`."""
        if self.level == "token":
            value = ev.raw(self.of, self.anchor)
        elif self.level == "sequence":
            value = ev.row_log_ratio(self.of, self.anchor).unsqueeze(-1)
        elif self.level == "geometric":
            value = ev.row_mean_log_ratio(self.of, self.anchor).unsqueeze(-1)
        else:
            value = segment_mean(ev.raw(self.of, self.anchor), ev.mask)
        value = value.clamp(-self.clamp, self.clamp)
        return (value >= log_of(self.low)) & (value <= log_of(self.high))


@dataclass(frozen=True, kw_only=True)
class Veto(RatioMask):
    """Reject the whole row when any token in play has a ratio below `low` or above `high`."""

    name: ClassVar[str] = "veto"
    summary: ClassVar[str] = "a row goes when any of its tokens has a ratio below 1e-4"
    reference: ClassVar[str] = "verl rollout_token_veto_threshold; SkyRL outlier masking"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep the row when low <= min_t r_t and max_t r_t <= high"
    differences: ClassVar[tuple[str, ...]] = (
        "verl's 2025 helper ignores it unless a rejection option is also set (VCPO and VESPO carry that code)",
    )
    host: ClassVar[str] = "reinforce"
    low: float = number(1e-4, minimum=0)
    high: float = number(math.inf, minimum=0)

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1]`."""
        value = ev.raw(self.of, self.anchor)
        outside = ((value < log_of(self.low)) | (value > log_of(self.high))) & ev.mask
        return ~outside.any(-1, keepdim=True)


@dataclass(frozen=True, kw_only=True)
class Divergence(RatioMask):
    """Keep where an estimate of the KL divergence stays within bounds (TRM 2512.23075).

    l = log ratio; k1 = -l, k2 = l^2/2, k3 = e^l - 1 - l (verl's signs; `inverse=on` swaps the two policies, AReaL's).
    `reduce` takes each token's own value, or the mean, sum or maximum over the row.
    """

    name: ClassVar[str] = "divergence"
    summary: ClassVar[str] = "rows with a mean k3 above 0.01 rejected"
    reference: ClassVar[str] = "Trust-region masking 2512.23075"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "keep where low <= reduce_t k(l_t) <= high"
    differences: ClassVar[tuple[str, ...]] = (
        "verl: k3 = r - 1 - log r, k1 = -log r; AReaL: k3 = 1/r - 1 + log r, k1 = +log r",
    )
    host: ClassVar[str] = "reinforce"
    kind: str = choice("k3", "k2", "k1", "ratio")
    reduce: str = choice("mean", "sum", "max", "token")
    inverse: str = choice("off", "on")
    low: float = number(-math.inf)
    high: float = number(0.01)

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1|T]`."""
        value = torch.where(ev.mask, self._estimate(ev), 0.0)
        if self.reduce == "sum":
            value = value.sum(-1, keepdim=True)
        elif self.reduce == "mean":
            value = value.sum(-1, keepdim=True) / ev.lengths.clamp(min=1).unsqueeze(-1)
        elif self.reduce == "max":
            value = torch.where(ev.mask, value, -math.inf).amax(-1, keepdim=True)
            value = torch.where(torch.isfinite(value), value, 0.0)
        return (value >= self.low) & (value <= self.high)

    def _estimate(self, ev: Evidence) -> Tensor:
        logs = ev.log_ratio(self.of, self.anchor, self.clamp)
        logs = -logs if self.inverse == "on" else logs
        if self.kind == "k1":
            return -logs
        if self.kind == "k2":
            return logs * logs / 2
        return logs.exp() - (1 + logs) if self.kind == "k3" else logs.exp()


@dataclass(frozen=True, kw_only=True)
class ProbabilityBand(Band):
    """Keep what has low <= p - q <= high: tokens by the change of their probability, rows by its mean or sum."""

    name: ClassVar[str] = "probability-band"
    summary: ClassVar[str] = "rows whose mean change of probability is outside -0.2..0.2 rejected"
    reference: ClassVar[str] = "ROLL train-infer filters"
    formula: ClassVar[str] = "keep where low <= p - q <= high"
    differences: ClassVar[tuple[str, ...]] = ()
    low: float = number(-0.2)
    high: float = number(0.2)

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1|T]`."""
        fields = {"current": "logp", "behavior": "behavior_logp", "proximal": "proximal_logp"}
        change = ev.token_field(fields[self.of]).exp() - ev.token_field(fields[self.anchor]).exp()
        change = torch.where(ev.mask, change, 0.0)
        if self.level == "segment":
            change = segment_mean(change, ev.mask)
        elif self.level != "token":
            change = change.sum(-1, keepdim=True)
            if self.level == "geometric":
                change = change / ev.lengths.clamp(min=1).unsqueeze(-1)
        return (change >= self.low) & (change <= self.high)


def segment_mean(value: Tensor, mask: Tensor) -> Tensor:
    """`[..., T]` mean of `value` over the run of True tokens each token belongs to; 0 at masked tokens."""
    before = torch.nn.functional.pad(mask[..., :-1], (1, 0))
    run = (mask & ~before).cumsum(-1) * mask
    size = mask.shape[-1] + 1
    sums = value.new_zeros((*value.shape[:-1], size)).scatter_add_(-1, run, value)
    counts = torch.zeros_like(sums).scatter_add_(-1, run, torch.ones_like(value))
    return torch.where(mask, (sums / counts.clamp(min=1)).gather(-1, run), 0.0)

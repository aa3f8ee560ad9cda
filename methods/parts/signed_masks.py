"""Masks that depend on the sign of the advantage: OPSM, VACO, STAPO."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.methods.parts.masks import RatioMask
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Opsm(RatioMask):
    """Drop rows with A < 0 that have drifted: mean(log mu - log theta) > delta (DeepSeek-V3.2 2512.02556)."""

    name: ClassVar[str] = "opsm"
    summary: ClassVar[str] = "drifted rows with a negative advantage rejected"
    reference: ClassVar[str] = "DeepSeek-V3.2 2512.02556"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "reject where A<0 and mean_t(log mu - log theta) > delta"
    differences: ClassVar[tuple[str, ...]] = ("delta: unset in TRL, 1e-4 in slime; anchor mu in TRL, 'old' in slime",)
    host: ClassVar[str] = "clip"
    delta: float = number(0.05)

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1|T]`."""
        drift = -ev.row_mean_log_ratio(self.of, self.anchor).unsqueeze(-1)
        return ~((ev.advantage < 0) & (drift > self.delta))


@dataclass(frozen=True, kw_only=True)
class Vaco(RatioMask):
    """In rows whose mean |r - 1| exceeds delta, drop the tokens that push further out (VACO 2603.01365).

    A token pushes out where sign(log r) A > 0. mean |r - 1| is twice an estimate of the total variation.
    """

    name: ClassVar[str] = "vaco"
    summary: ClassVar[str] = "outward-pushing tokens of rows with total variation above 0.05 rejected"
    reference: ClassVar[str] = "VACO 2603.01365"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "reject where mean_t |r-1| > delta and sign(log r) A > 0"
    host: ClassVar[str] = "reinforce"
    delta: float = number(0.05, minimum=0)

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, T]`."""
        logs = ev.log_ratio(self.of, self.anchor, self.clamp)
        moved = torch.where(ev.mask, torch.expm1(logs).abs(), 0.0).sum(-1) / ev.lengths.clamp(min=1)
        return ~((moved.unsqueeze(-1) > self.delta) & (logs.sign() * ev.advantage > 0))


@dataclass(frozen=True, kw_only=True)
class PositiveOnly(Mask):
    """Learn only from tokens with a positive advantage (RAFT; PipelineRL's `relu_log_p_weights`)."""

    name: ClassVar[str] = "positive-only"
    summary: ClassVar[str] = "tokens with a negative advantage rejected"
    reference: ClassVar[str] = "RAFT 2304.06767; PipelineRL 2509.19128"
    year: ClassVar[int] = 2023
    formula: ClassVar[str] = "keep where A >= 0"
    host: ClassVar[str] = "token-tis"

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1|T]`."""
        return ev.advantage >= 0


@dataclass(frozen=True, kw_only=True)
class Stapo(Mask):
    """Silence spurious tokens: rewarded, improbable and yet in a confident state (STAPO 2602.15620).

    A token is spurious where A > 0, its probability is below `probability` and its entropy below `entropy`
    nats; it is left out of the denominators too (`rejected=dropped`), as in the paper. Written from the paper.
    """

    name: ClassVar[str] = "stapo"
    summary: ClassVar[str] = "improbable tokens at low entropy with A > 0 silenced"
    reference: ClassVar[str] = "STAPO 2602.15620"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "reject where A>0 and pi<probability and H<entropy"
    host: ClassVar[str] = "clip-higher"
    rejected: str = choice("dropped", "counted", "apart")
    probability: float = number(0.002, minimum=0, maximum=1)
    entropy: float = number(0.5, minimum=0)

    @property
    def needs(self) -> frozenset[str]:
        """The entropy of the current policy at each token."""
        return frozenset({"entropy"})

    def keep(self, ev: Evidence) -> Tensor:
        """`[..., P, G, T]`."""
        improbable = ev.token_field("logp").exp() < self.probability
        return ~((ev.advantage > 0) & improbable & (ev.token_field("entropy") < self.entropy))

"""The seven aggregations: how much a token of each row counts (`reference` names in verl's spelling)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.interfaces import Aggregation
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.naming.parameters import choice, number

ROW_AXES = (-2, -1)


def _spread(value: Tensor) -> Tensor:
    """Leading shape to `[..., 1, 1]`."""
    return value.unsqueeze(-1).unsqueeze(-1)


def _row_count(ev: Evidence, empty: str) -> Tensor:
    """Rows in the denominator, at least 1: those with tokens, or all valid ones."""
    counted = ev.rows if empty == "counted" else ev.lengths > 0
    return _spread(counted.sum(ROW_AXES).clamp(min=1))


def _masked(ev: Evidence, value: Tensor) -> Tensor:
    return torch.where(ev.lengths > 0, value, 0.0).to(ev.batch.logp.dtype)


@dataclass(frozen=True, kw_only=True)
class TokenMean(Aggregation):
    """N = 1 / number of tokens of the batch (DAPO 2503.14476, equation 8)."""

    name: ClassVar[str] = "token-mean"
    summary: ClassVar[str] = "every token of the batch counts the same"
    reference: ClassVar[str] = "DAPO 2503.14476"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / sum_i L_i"

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return _masked(ev, 1 / _spread(ev.tokens.clamp(min=1)).expand_as(ev.lengths))


@dataclass(frozen=True, kw_only=True)
class SeqMeanTokenMean(Aggregation):
    """N = 1 / (L_i n): mean over the tokens of a row, then over rows (GRPO 2402.03300, equation 3).

    `empty=counted` counts valid rows without tokens in n, as TRL and slime do; verl and ROLL leave them out.
    `over=tokens` divides the sum of row means by the number of tokens instead (prime-rl of 2025, sequence ratio).
    """

    name: ClassVar[str] = "seq-mean-token-mean"
    summary: ClassVar[str] = "every row counts the same (the comparison default)"
    reference: ClassVar[str] = "GRPO 2402.03300"
    year: ClassVar[int] = 2024
    formula: ClassVar[str] = "N = 1 / (n L_i)"
    empty: str = choice("skipped", "counted")
    over: str = choice("rows", "tokens")

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        count = _row_count(ev, self.empty) if self.over == "rows" else _spread(ev.tokens.clamp(min=1))
        return _masked(ev, 1 / (ev.lengths.clamp(min=1) * count))


@dataclass(frozen=True, kw_only=True)
class SeqMeanTokenSum(Aggregation):
    """N = 1 / n: sum over the tokens of a row, mean over rows; unbiased for sequence importance sampling."""

    name: ClassVar[str] = "seq-mean-token-sum"
    summary: ClassVar[str] = "rows count in proportion to their length"
    reference: ClassVar[str] = "verl, loss_agg_mode"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / n"
    empty: str = choice("skipped", "counted")

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return _masked(ev, 1 / _row_count(ev, self.empty).expand_as(ev.lengths))


@dataclass(frozen=True, kw_only=True)
class SeqMeanTokenSumNorm(Aggregation):
    """N = 1 / (n T_max) with a fixed horizon (Dr. GRPO 2503.20783); horizon 0 means the padded length T."""

    name: ClassVar[str] = "seq-mean-token-sum-norm"
    summary: ClassVar[str] = "token sum over a fixed horizon, mean over rows"
    reference: ClassVar[str] = "Dr. GRPO 2503.20783"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / (n T_max)"
    empty: str = choice("skipped", "counted")
    horizon: float = number(0, minimum=0)

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        horizon = self.horizon or ev.mask.shape[-1]
        return _masked(ev, 1 / (horizon * _row_count(ev, self.empty)).expand_as(ev.lengths))


@dataclass(frozen=True, kw_only=True)
class TokenSum(Aggregation):
    """N = 1 / divisor: the plain sum, or a sum over a configured constant (Tinker, PipelineRL)."""

    name: ClassVar[str] = "token-sum"
    summary: ClassVar[str] = "plain sum over tokens, over a constant"
    reference: ClassVar[str] = "Tinker; PipelineRL 2509.19128"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = 1 / divisor"
    divisor: float = number(1, minimum=1e-12)

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return _masked(ev, torch.full_like(ev.lengths, 1 / self.divisor))


@dataclass(frozen=True, kw_only=True)
class DeltaL(Aggregation):
    """N = L_i^-alpha / (M sum_j L_j^-alpha): minimum-variance length weights (Delta-L 2509.07558)."""

    name: ClassVar[str] = "delta-ln"
    summary: ClassVar[str] = "rows weighted by a power of their length"
    reference: ClassVar[str] = "Delta-L normalization 2509.07558"
    year: ClassVar[int] = 2025
    formula: ClassVar[str] = "N = L_i^-alpha / (T_max sum_j L_j^-alpha)"
    alpha: float = number(0.75, minimum=0)
    horizon: float = number(0, minimum=0)

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        horizon = self.horizon or ev.mask.shape[-1]
        power = _masked(ev, ev.lengths.clamp(min=1) ** -self.alpha)
        return power / (horizon * _spread(power.sum(ROW_AXES).clamp(min=torch.finfo(power.dtype).tiny)))


@dataclass(frozen=True, kw_only=True)
class LengthMean(Aggregation):
    """N = 1 / n on a row loss multiplied by its length (LUSPO 2602.05261): N = L_i * 1 / (L_i n)."""

    name: ClassVar[str] = "luspo-mean"
    summary: ClassVar[str] = "the sequence loss times its length, mean over rows"
    reference: ClassVar[str] = "LUSPO 2602.05261"
    year: ClassVar[int] = 2026
    formula: ClassVar[str] = "N = 1 / n over all valid rows"

    def factor(self, ev: Evidence) -> Tensor:
        """`[..., P, G]`."""
        return _masked(ev, 1 / _row_count(ev, "counted").expand_as(ev.lengths))

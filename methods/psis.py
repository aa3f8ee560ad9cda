"""Pareto-smoothed importance sampling of sequence weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.reach import Scope
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class Psis(WeightMethod):
    """c = A n w~, w~ the smoothed and self-normalized sequence weights of the n rows (PSIS 1507.02646).

    The largest M = floor(min(0.2 n, 3 sqrt(n / r_eff))) weights become the order statistics of a generalized Pareto
    distribution fitted to them, and none exceeds the largest raw one. Its shape k-hat above 0.7 says that the
    estimate is not to be trusted.
    """

    name: ClassVar[str] = "psis"
    summary: ClassVar[str] = "sequence weights with a Pareto-smoothed tail, self-normalized"
    reference: ClassVar[str] = "Vehtari et al. 1507.02646"
    year: ClassVar[int] = 2015
    sees: ClassVar[Scope] = Scope.BATCH
    formula: ClassVar[str] = "c = A n w~, w~ = Pareto-smoothed w, summing to 1"
    r_eff: float = number(1.0, minimum=1e-3)

    def weight(self, ev: EvidenceView) -> Tensor:
        """`[..., P, G, 1]` with mean 1 over the rows with tokens in play."""
        logs = ev.pair(self.of, self.anchor).row_log
        flat, rows = (each.reshape(-1, *logs.shape[-2:]) for each in (logs, ev.rows.nonempty))
        out = torch.zeros_like(flat)
        for one, (row, keep) in enumerate(zip(flat, rows, strict=True)):
            if bool(keep.any()):
                smoothed, _ = pareto_smooth(row[keep], self.r_eff)
                out[one][keep] = smoothed.exp() * keep.sum()
        return out.reshape(logs.shape).unsqueeze(-1)


def pareto_smooth(log_weight: Tensor, r_eff: float = 1.0) -> tuple[Tensor, float]:
    """Normalized smoothed log-weights `[n]` (their log-sum-exp is 0) and the tail shape k-hat.

    k-hat is inf when the tail is too short (fewer than 5 weights) or flat to be fitted; nothing is smoothed then.
    """
    count = len(log_weight)
    shifted = log_weight - log_weight.max()
    tail = int(min(0.2 * count, 3 * math.sqrt(count / r_eff)))
    order = shifted.argsort()
    largest = order[count - tail :]
    if tail < 5 or float(shifted[largest[-1]] - shifted[largest[0]]) <= 0:
        return shifted - shifted.logsumexp(0), math.inf
    cutoff = shifted[order[count - tail - 1]].exp()
    shape, scale = fit_pareto(shifted[largest].exp() - cutoff)
    if math.isfinite(shape) and scale > 0:
        ranks = (torch.arange(tail, dtype=shifted.dtype, device=shifted.device) + 0.5) / tail
        shifted = shifted.clone()
        shifted[largest] = (_pareto_quantile(ranks, shape, scale) + cutoff).log().clamp(max=0.0)
    return shifted - shifted.logsumexp(0), shape


def fit_pareto(excess: Tensor) -> tuple[float, float]:
    """Shape k and scale sigma of a generalized Pareto fit to sorted positive excesses (Zhang and Stephens 2009).

    A weak prior pulls k to 0.5 with the weight of 10 observations.
    """
    count = len(excess)
    points = 30 + int(math.sqrt(count))
    grid = torch.arange(1, points + 1, dtype=excess.dtype, device=excess.device)
    quartile = excess[int(count / 4 + 0.5) - 1]
    if not bool(quartile > excess[0]):
        return math.inf, 0.0
    theta = (1 - (points / (grid - 0.5)).sqrt()) / (3 * quartile) + 1 / excess[-1]
    shapes = torch.log1p(-theta[:, None] * excess).mean(-1)
    profile = count * ((-theta / shapes).log() - shapes - 1)
    posterior = 1 / (profile[None, :] - profile[:, None]).exp().sum(-1)
    keep = posterior >= 10 * torch.finfo(excess.dtype).eps
    posterior, theta = posterior[keep], theta[keep]
    posterior = posterior / posterior.sum()
    best = (theta * posterior).sum()
    shape = float(torch.log1p(-best * excess).mean())
    scale = -shape / float(best)
    return (count * shape + 5.0) / (count + 10.0), scale


def _pareto_quantile(rank: Tensor, shape: float, scale: float) -> Tensor:
    if abs(shape) < 1e-12:
        return -scale * torch.log1p(-rank)
    return scale * torch.expm1(-shape * torch.log1p(-rank)) / shape

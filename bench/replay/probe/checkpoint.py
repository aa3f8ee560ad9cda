"""The probe at one checkpoint: every method's update on many batches of the same behavior policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vcpo_bench.bench.replay.probe.statistics import (
    Floats,
    Products,
    correlation,
    cosine_of_mean,
    estimate,
    mean,
    quantities,
    resampling,
)
from vcpo_bench.bench.replay.probe.updates import Estimators, Updates
from vcpo_bench.bench.training.learner import GRAD_CLIP
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Method, parse_method

CONTROL = "reinforce"
"""Measured on fresh data of theta_t as well: what the update is without lag."""
TRUTH = "truth"
"""The name of the true gradient in a table of the probe."""
_CHUNK = 1 << 14

Row = dict[str, Any]


def truth_method(responses: int) -> Method:
    """An estimator whose mean on fresh data is exactly the gradient of the expected reward over the horizon T.

    Leave-one-out baselines do not correlate with the row they are subtracted from, and the token sum is over a constant
    and not over each row's length; a group of one has no others, hence no baseline.
    """
    baseline = "rloo" if responses > 1 else "raw"
    return parse_method(f"reinforce+{baseline}+seq-mean-token-sum-norm")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A policy theta_t with what it takes to see the updates of any method there.

    Attributes:
        step: T.
        lag: T minus the version of the behavior policy mu.
        estimators: Methods at the weights theta_t.
        stale: Independent batches sampled by mu, all scored against theta_t.
        fresh: Independent batches sampled by theta_t: for the true gradient.
        control: More of these: for the update without lag.
        preconditioner: `[D]` what the optimizer multiplies a gradient by; None before its first step.
        displacement: `[D]` theta_t minus the weights of mu; None without lag.
    """

    step: int
    lag: int
    estimators: Callable[[Sequence[Method]], Estimators]
    stale: Sequence[Trajectories]
    fresh: Sequence[Trajectories]
    control: Sequence[Trajectories]
    preconditioner: Tensor | None
    displacement: Tensor | None = None


def probe_checkpoint(checkpoint: Checkpoint, methods: Sequence[Method]) -> Iterator[Row]:
    """Rows of `records.PROBES`, those of the true gradient and of the control first.

    Args:
        checkpoint: Where.
        methods: Whose updates; the signal-to-noise ratios of all are compared with that of the first.
    """
    truth = _Truth(checkpoint)
    yield from truth.rows()
    control, stale = resampling(len(checkpoint.control), 1), resampling(len(checkpoint.stale), 2)
    (found,) = checkpoint.estimators([parse_method(CONTROL)]).updates(checkpoint.control, checkpoint.step)
    for preconditioned, values in truth.compare(found, control, stale=False):
        yield from _rows(checkpoint, CONTROL, 0, preconditioned, values, len(checkpoint.control))
    del found  # gradients are what memory goes to
    reference: dict[tuple[bool, str], Floats] = {}
    measured = checkpoint.estimators(methods).updates(checkpoint.stale, checkpoint.step)
    for name, found in zip([method.canonical for method in methods], measured, strict=True):
        for preconditioned, values in truth.compare(found, stale, stale=True):
            for ratio in ("snr", "snr_along"):
                first = reference.setdefault((preconditioned, ratio), values[ratio])
                values[f"{ratio}_ratio"] = values[ratio] / first
            yield from _rows(checkpoint, name, checkpoint.lag, preconditioned, values, len(checkpoint.stale))


class _Truth:
    """The true gradient at a checkpoint, before and after preconditioning, and how updates compare with it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        method = truth_method(checkpoint.fresh[0].responses.shape[1])
        self.gradients = checkpoint.estimators([method]).updates(checkpoint.fresh, checkpoint.step)[0].gradients
        diagonal = checkpoint.preconditioner
        self.spaces: list[Tensor | None] = [None] if diagonal is None else [None, diagonal]
        self.grams = [products(self.gradients, self.gradients, space) for space in self.spaces]
        self.weights = resampling(len(self.gradients), 0)

    def rows(self) -> Iterator[Row]:
        """Of the gradient itself: what one fresh batch says about it."""
        for preconditioned, gram in enumerate(self.grams):
            found = quantities(Products(gram, gram, gram), self.weights, self.weights)
            values = {name: found[name] for name in ("signal_sq", "variance", "snr")}
            if self.checkpoint.displacement is not None:
                space, ones = self.spaces[preconditioned], np.ones(len(self.gradients))
                values["cosine_back"] = self._back(self.gradients, space, ones, found["signal_sq"], self.weights)
            yield from _rows(self.checkpoint, TRUTH, 0, bool(preconditioned), values, len(self.gradients))

    def _back(
        self, gradients: Tensor, space: Tensor | None, factors: Floats, signal: Floats, weights: Floats
    ) -> Floats:
        """Cosine of the mean update with theta_t - theta_mu."""
        assert self.checkpoint.displacement is not None
        away = self.checkpoint.displacement.double()
        seen = away if space is None else away * space.double()
        dots = products(gradients, seen.unsqueeze(0), None)[:, 0] * factors
        return cosine_of_mean(dots, signal, float(away.norm()), weights)

    def compare(self, found: Updates, weights: Floats, stale: bool) -> Iterator[tuple[bool, dict[str, Floats]]]:
        """Quantities of one method's updates, before and after preconditioning."""
        plain = products(found.gradients, found.gradients, None)
        norms = np.sqrt(np.diag(plain))
        for space, gram in zip(self.spaces, self.grams, strict=True):
            factors = found.scales if space is None else found.scales * np.minimum(1.0, GRAD_CLIP / (norms + 1e-6))
            own = plain if space is None else products(found.gradients, found.gradients, space)
            own = own * np.outer(factors, factors)
            cross = products(found.gradients, self.gradients, space) * factors[:, None]
            values = quantities(Products(own, cross, gram), weights, self.weights)
            if stale and self.checkpoint.displacement is not None:
                values["cosine_back"] = self._back(found.gradients, space, factors, values["signal_sq"], weights)
            if space is None:
                values["step_scale"] = mean(found.scales, weights)
                values["scale_norm_correlation"] = correlation(found.scales, norms, weights)
            yield space is not None, values


def products(first: Tensor, second: Tensor, space: Tensor | None) -> Floats:
    """`[n, m]` inner products of rows, each multiplied by `space` where given, in float64."""
    total = torch.zeros(len(first), len(second), dtype=torch.float64)
    for begin in range(0, first.shape[1], _CHUNK):
        part = slice(begin, begin + _CHUNK)
        left = first[:, part].double()
        if space is not None:
            left = left * space[part].double().square()
        total += left @ second[:, part].double().T
    found: Floats = total.numpy()
    return found


def _rows(
    checkpoint: Checkpoint, method: str, lag: int, preconditioned: bool, values: Mapping[str, Floats], n: int
) -> Iterator[Row]:
    for quantity, resampled in values.items():
        value, low, high = (None if np.isnan(x) else x for x in estimate(resampled))
        yield {
            "method": method,
            "step": checkpoint.step,
            "lag": lag,
            "preconditioned": preconditioned,
            "quantity": quantity,
            "value": value,
            "low": low,
            "high": high,
            "n": n,
            "fresh": len(checkpoint.fresh),
        }

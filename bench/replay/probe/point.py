"""The probe at one point: every method's update on many batches from the same behavior policy."""

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
from vcpo_bench.bench.replay.probe.updates import Estimators, MethodUpdates
from vcpo_bench.bench.training.learner_step import GRAD_CLIP
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Method, parse_method

CONTROL = "reinforce"
"""Method that is also measured on fresh data of theta_t: its update without lag."""
TRUTH = "truth"
"""Name of the true gradient in the table of a probe."""
_CHUNK = 1 << 14

Row = dict[str, Any]


def truth_method(responses: int) -> Method:
    """An estimator whose mean on fresh data is exactly the gradient of the expected reward over the horizon T.

    A leave-one-out baseline is independent of the row it is subtracted from, and token sums are divided by a constant,
    not by each row's length. A group of one response has no baseline.
    """
    baseline = "rloo" if responses > 1 else "raw"
    return parse_method(f"reinforce+{baseline}+seq-mean-token-sum-norm")


@dataclass(frozen=True, slots=True)
class ProbePoint:
    """A policy theta_t and the samples needed to measure the update of any method there.

    Attributes:
        step: T.
        lag: T minus the version of the behavior policy mu.
        estimators: Makes the estimators of methods at the weights theta_t.
        stale: Independent batches sampled by mu, all scored against theta_t.
        fresh: Independent batches sampled by theta_t, for the true gradient.
        control: More of these, for the update without lag.
        preconditioner: `[D]` factor by which the optimizer multiplies a gradient; None where there is none.
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


def probe_point(point: ProbePoint, methods: Sequence[Method]) -> Iterator[Row]:
    """Measure methods at one point.

    Args:
        point: Where to measure.
        methods: Methods to measure; signal-to-noise ratios are relative to the first.

    Yields:
        Rows of `records.PROBES`, those of the true gradient and of the control first.
    """
    truth = _Truth(point)
    yield from truth.rows()
    control, stale = resampling(len(point.control), 1), resampling(len(point.stale), 2)
    (found,) = point.estimators([parse_method(CONTROL)]).updates(point.control, point.step)
    for preconditioned, values in truth.compare(found, control, stale=False):
        yield from _rows(point, CONTROL, 0, preconditioned, values, len(point.control))
    del found  # gradients dominate memory use
    reference: dict[tuple[bool, str], Floats] = {}
    measured = point.estimators(methods).updates(point.stale, point.step)
    for name, found in zip([method.canonical for method in methods], measured, strict=True):
        for preconditioned, values in truth.compare(found, stale, stale=True):
            for ratio in ("snr", "snr_along"):
                first = reference.setdefault((preconditioned, ratio), values[ratio])
                values[f"{ratio}_ratio"] = values[ratio] / first
            yield from _rows(point, name, point.lag, preconditioned, values, len(point.stale))


class _Truth:
    """The true gradient at a point, before and after preconditioning, and how updates compare with it."""

    def __init__(self, point: ProbePoint) -> None:
        self.point = point
        method = truth_method(point.fresh[0].responses.shape[1])
        self.gradients = point.estimators([method]).updates(point.fresh, point.step)[0].gradients
        diagonal = point.preconditioner
        self.spaces: list[Tensor | None] = [None] if diagonal is None else [None, diagonal]
        self.grams = [products(self.gradients, self.gradients, space) for space in self.spaces]
        self.weights = resampling(len(self.gradients), 0)

    def rows(self) -> Iterator[Row]:
        """Rows of the gradient itself: how well one fresh batch estimates it."""
        for preconditioned, gram in enumerate(self.grams):
            found = quantities(Products(gram, gram, gram), self.weights, self.weights)
            values = {name: found[name] for name in ("signal_sq", "variance", "snr")}
            if self.point.displacement is not None:
                space, ones = self.spaces[preconditioned], np.ones(len(self.gradients))
                values["cosine_back"] = self._back(self.gradients, space, ones, found["signal_sq"], self.weights)
            yield from _rows(self.point, TRUTH, 0, bool(preconditioned), values, len(self.gradients))

    def _back(
        self, gradients: Tensor, space: Tensor | None, factors: Floats, signal: Floats, weights: Floats
    ) -> Floats:
        """Cosine of the mean update with theta_t - theta_mu."""
        assert self.point.displacement is not None
        away = self.point.displacement.double()
        seen = away if space is None else away * space.double()
        dots = products(gradients, seen.unsqueeze(0), None)[:, 0] * factors
        return cosine_of_mean(dots, signal, float(away.norm()), weights)

    def compare(self, found: MethodUpdates, weights: Floats, stale: bool) -> Iterator[tuple[bool, dict[str, Floats]]]:
        """Quantities of one method's updates, before and after preconditioning."""
        plain = products(found.gradients, found.gradients, None)
        norms = np.sqrt(np.diag(plain))
        for space, gram in zip(self.spaces, self.grams, strict=True):
            factors = found.scales if space is None else found.scales * np.minimum(1.0, GRAD_CLIP / (norms + 1e-6))
            own = plain if space is None else products(found.gradients, found.gradients, space)
            own = own * np.outer(factors, factors)
            cross = products(found.gradients, self.gradients, space) * factors[:, None]
            values = quantities(Products(own, cross, gram), weights, self.weights)
            if stale and self.point.displacement is not None:
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
    point: ProbePoint, method: str, lag: int, preconditioned: bool, values: Mapping[str, Floats], n: int
) -> Iterator[Row]:
    for quantity, resampled in values.items():
        value, low, high = (None if np.isnan(x) else x for x in estimate(resampled))
        yield {
            "method": method,
            "step": point.step,
            "lag": lag,
            "preconditioned": preconditioned,
            "quantity": quantity,
            "value": value,
            "low": low,
            "high": high,
            "n": n,
            "fresh": len(point.fresh),
        }

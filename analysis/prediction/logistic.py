"""Ridge logistic regression by Newton's method, with standard errors of clusters of updates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from vcpo_bench.analysis.prediction.panel import Array

RIDGE = 1.0
"""Penalty of every coefficient but the intercept, for features of unit spread: half of RIDGE times its square."""

_ITERATIONS = 50
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Logistic:
    """A fitted model of log odds: `features @ coefficients[1:] + coefficients[0]`."""

    coefficients: Array

    def log_odds(self, features: Array) -> Array:
        """Linear predictor [R] of features [R, F]."""
        return np.asarray(features @ self.coefficients[1:] + self.coefficients[0])

    def probability(self, features: Array) -> Array:
        """Probability [R]."""
        return _sigmoid(self.log_odds(features))


def fit(features: Array, label: NDArray[np.bool_], ridge: float = RIDGE) -> Logistic:
    """Maximize the penalized likelihood.

    Args:
        features: [R, F], of about unit spread.
        label: [R].
        ridge: Penalty; 0 for none.
    """
    design, penalty = _design(features, ridge)
    target = label.astype(np.float64)
    share = np.clip(target.mean(), 1e-6, 1 - 1e-6)
    beta = np.zeros(design.shape[1])
    beta[0] = np.log(share / (1 - share))
    value = _objective(design, target, beta, penalty)
    for _ in range(_ITERATIONS):
        probability = _sigmoid(design @ beta)
        slope = design.T @ (target - probability) - penalty * beta
        step = np.linalg.solve(_curvature(design, probability, penalty), slope)
        size = 1.0
        while (new := _objective(design, target, beta + size * step, penalty)) < value and size > 1e-6:
            size /= 2
        beta, gained, value = beta + size * step, new - value, new
        if gained < _TOLERANCE:
            break
    return Logistic(beta)


def clustered_errors(model: Logistic, features: Array, label: NDArray[np.bool_], cluster: NDArray[np.int64]) -> Array:
    """Covariance [F + 1, F + 1] of the coefficients: the sandwich with the scores of a cluster added up first."""
    design, penalty = _design(features, RIDGE)
    probability = _sigmoid(design @ model.coefficients)
    bread = np.linalg.inv(_curvature(design, probability, penalty))
    scores = design * (label - probability)[:, None]
    names, member = np.unique(cluster, return_inverse=True)
    summed = np.zeros((names.size, design.shape[1]))
    np.add.at(summed, member, scores)
    correction = names.size / max(names.size - 1, 1)
    return np.asarray(correction * bread @ (summed.T @ summed) @ bread)


def wald_p(value: float, error: float) -> float:
    """Two-sided p of an estimate against 0."""
    return float(2 * special.ndtr(-abs(value) / error)) if error > 0 else 1.0


def _design(features: Array, ridge: float) -> tuple[Array, Array]:
    design = np.column_stack([np.ones(len(features)), features])
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 1e-9  # none, but a column of zeros must not make the curvature singular
    return design, penalty


def _curvature(design: Array, probability: Array, penalty: Array) -> Array:
    weight = np.maximum(probability * (1 - probability), 1e-12)
    return np.asarray(design.T @ (design * weight[:, None]) + np.diag(penalty))


def _objective(design: Array, target: Array, beta: Array, penalty: Array) -> float:
    odds = design @ beta
    return float((target * odds - np.logaddexp(0, odds)).sum() - 0.5 * (penalty * beta**2).sum())


def _sigmoid(odds: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -700, 700))))

"""Where responses are so long that a detector tuned on short ones would raise an alarm at nothing.

Log-weights add up over a response, and so does the gap between the numbers of engine and trainer, which is there
without any lag: from some length on it passes, alone, a threshold that was tuned on short responses.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.monitoring.calibration import Calibration
from vcpo_bench.analysis.monitoring.signal import Signal

Array = NDArray[np.float64]

GAP = 0.002
"""Nats of KL per token that engine and trainer may differ by at no harm: twice that of VCPO's curves (2602.17616)."""
_QUANTILES = {"05": -1.645, "25": -0.674, "50": 0.0, "75": 0.674, "95": 1.645}
_LARGEST = 2.6
"""The largest of 128 normal draws, in standard deviations."""


def too_long(one: Calibration, signal: Signal, lengths: Array) -> NDArray[np.bool_]:
    """At which mean lengths [S] a detector must not be heard; nowhere within those it was tuned on, or without lengths.

    Args:
        one: The detector.
        signal: What it listens to.
        lengths: Mean tokens of the responses of each update; NaN: not known.
    """
    longer = lengths > (np.inf if one.lengths is None else one.lengths[1])
    if signal.role != "weights" or not longer.any():
        return np.zeros_like(longer)
    columns, alone = set(signal.columns), gap_alone(lengths)
    if not columns <= alone.keys() or columns == {"kl_mu_theta_k3"}:
        return np.zeros_like(longer)
    return np.asarray(longer & (signal.of(alone) > one.detector.threshold))


def gap_alone(lengths: Array) -> dict[str, Array]:
    """Columns of `records.steps.STEPS` [S] that the gap makes: log-weights are normal, their variance twice the KL."""
    variance = 2 * GAP * lengths
    spread = np.sqrt(variance)
    # the largest weight falls again beyond: there a smaller gap has the larger one
    widest = np.minimum(spread, _LARGEST)
    return {
        "length_mean": lengths,
        "kl_mu_theta_k3": np.full(lengths.shape, GAP),
        "ess_ratio": np.exp(-variance),
        "log_weight_var": variance,
        "log_weight_max": _LARGEST * widest - widest**2 / 2,
        **{f"log_weight_q{name}": at * spread - variance / 2 for name, at in _QUANTILES.items()},
    }

"""Reward on the scale that the collapse rule was set for: 0 to 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.departures import start_size
from vcpo_bench.analysis.tolerance import EQUAL

Array = NDArray[np.float64]

LOWER_HALF = -0.5
"""Reward that reaches down to here is read as between -1 and 1; what stays above is between 0 and 1 with penalties."""


def to_unit(values: Array) -> tuple[Array | None, str]:
    """Reward on the scale the rule was set for; the reason where it cannot be, or what was done to it."""
    low, high = float(values.min()), float(values.max())
    if low >= -EQUAL and high <= 1 + EQUAL:
        return values, ""
    if low > LOWER_HALF + EQUAL and high <= 1 + EQUAL:
        if np.median(values[: start_size(values.size)]) < 0:  # then 0 is not the least that can be earned
            return values - low, f"Reward was raised by {-low:.3g}, so that its lowest value is 0."
        return np.maximum(values, 0.0), f"Reward below 0, down to {low:.3g}, was counted as 0."
    if low >= -1 - EQUAL and high <= 1 + EQUAL:
        return (values + 1) / 2, "Reward between -1 and 1 was moved to 0 to 1."
    if low >= -EQUAL:
        return values / high, f"Reward was divided by its largest value, {high:.3g}."
    return None, (
        f"it runs from {low:.3g} to {high:.3g}, and half of the best means nothing without a zero; map an accuracy "
        "with --map eval_reward=KEY"
    )

"""What is known without looking at the run: any prediction must beat these."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, signal


@signal("circumstance")
def step(step: Array) -> Array:
    """The update's number: a clock."""
    return step


@signal("circumstance")
def lag(lag_max: Array) -> Array:
    """Largest lag of the consumed trajectories."""
    return lag_max


@signal("circumstance")
def lr(lr: Array, step_scale: Array) -> Array:
    """Log of the base learning rate: lr / step_scale.

    Rounded, because what is recorded in single precision is: equal rates must tie, whatever step scale was taken out.
    """
    logarithm: Array = np.log(lr / step_scale)
    return logarithm.round(5)

"""Signals of the gradient."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, signal
from vcpo_bench.analysis.monitoring.trailing import HISTORY, z_score


@signal("gradient")
def grad_norm(grad_norm: Array) -> Array:
    """Log of the gradient norm before clipping."""
    return np.log(grad_norm)


@signal("gradient", memory=HISTORY + 1)
def grad_norm_z(grad_norm: Array) -> Array:
    """Log gradient norm against the 50 updates before, in standard deviations."""
    return z_score(np.log(grad_norm))


@signal("gradient")
def head_norm(head_grad_norm: Array) -> Array:
    """Log of the output head's gradient norm."""
    return np.log(head_grad_norm)


@signal("gradient", memory=HISTORY + 1)
def head_norm_z(head_grad_norm: Array) -> Array:
    """Log head gradient norm against the 50 updates before, in standard deviations."""
    return z_score(np.log(head_grad_norm))


@signal("gradient")
def grad_cosine(grad_cosine: Array) -> Array:
    """Cosine of consecutive gradients is high (GAC)."""
    return grad_cosine

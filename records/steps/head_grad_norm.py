"""The share of the output head in the gradient."""

from __future__ import annotations

import math

from vcpo_bench.records.diagnostic import GradientDiagnostic, GradientView


class HeadGradNorm(GradientDiagnostic):
    """Gradient norm of the output head."""

    name = "head_grad_norm"
    unit = "l2"
    meaning = "gradient norm of the output head alone"
    label = "output head's gradient norm"
    log_axis = True

    def measure(self, gradient: GradientView) -> float:
        """NaN where the head is frozen."""
        return math.nan if gradient.head is None else float(gradient.head.norm())


COLUMNS = (HeadGradNorm(),)

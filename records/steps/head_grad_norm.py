"""The share of the output head in the gradient."""

from __future__ import annotations

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
        return gradient.head_norm


COLUMNS = (HeadGradNorm(),)

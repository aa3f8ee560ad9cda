"""Whether consecutive gradients point the same way."""

from __future__ import annotations

import math

from vcpo_bench.records.diagnostic import GradientDiagnostic, GradientView


class GradCosine(GradientDiagnostic):
    """Cosine of consecutive gradients (GAC, `methods/parts/gac.py`)."""

    name = "grad_cosine"
    unit = "-1..1"
    meaning = "cosine of this gradient and the previous one"
    label = "gradient cosine"

    def measure(self, gradient: GradientView) -> float:
        """NaN at the first update, and where one of the two is zero."""
        own, both, previous = gradient.dots
        product = math.sqrt(own) * math.sqrt(previous)
        return both / product if product > 0 else math.nan


COLUMNS = (GradCosine(),)

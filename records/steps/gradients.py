"""The gradient before it is clipped: whether consecutive ones agree, and the share of the output head."""

from __future__ import annotations

import math

from vcpo_bench.records.diagnostic import GradientDiagnostic, GradientView


def _cosine(gradient: GradientView) -> float:
    """Cosine of consecutive gradients (GAC, `methods/parts/gac.py`); NaN at the first update, and where one is zero."""
    own, both, previous = gradient.dots
    product = math.sqrt(own) * math.sqrt(previous)
    return both / product if product > 0 else math.nan


COLUMNS = (
    GradientDiagnostic(
        "grad_cosine",
        "-1..1",
        "cosine of this gradient and the previous one",
        measure=_cosine,
        label="gradient cosine",
    ),
    GradientDiagnostic(
        "head_grad_norm",
        "l2",
        "gradient norm of the output head alone",
        measure=lambda gradient: gradient.head_norm,
        label="output head's gradient norm",
        log_axis=True,
    ),
)

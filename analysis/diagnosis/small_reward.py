"""Rewards so small that the absolute steps of the collapse rule would hide a fall or a rise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import CollapseRule
from vcpo_bench.analysis.diagnosis.small_batch import rose_beyond_noise

Array = NDArray[np.float64]

LOST = 2 / 3
"""Share of the best that a fall must lose where that is less than the rule's least drop: half of little is noise."""
GAINED = 0.25
"""Share of the end that a rise must have gained: a reward that creeps up has stalled, however little noise it has."""
_POINTS = 3
"""Points that are averaged at either end."""


def rule_for(values: Array) -> CollapseRule:
    """The rule, with a least drop that the best of these rewards can lose; between 0 and 1, shape [n]."""
    rule = CollapseRule()
    return replace(rule, min_drop=min(rule.min_drop, LOST * float(values.max())))


def learned(values: Array, samples: float | None) -> bool:
    """Whether the last points are above the first ones by a share of themselves, and beyond their noise.

    Args:
        values: Reward between 0 and 1, shape [n].
        samples: Behind one point; None: not known.
    """
    start, end = float(values[:_POINTS].mean()), float(values[-_POINTS:].mean())
    return end - start >= GAINED * end and rose_beyond_noise(values, samples)

"""torch: the process that runs the cell trains."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.learners.catalog import LearnerKind


@dataclass(frozen=True, kw_only=True)
class TorchLearner(LearnerKind):
    """Trains in the process that runs the cell, with PyTorch."""

    name = "torch"
    summary = "the process that runs the cell, on its CPU or on one GPU"

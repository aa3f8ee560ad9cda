"""The torch learner under another name."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.bench.learners.torch_learner import TorchLearner


@dataclass(frozen=True, kw_only=True)
class Newcomer(TorchLearner):
    """Trains as its parent does."""

    name = "newcomer"
    summary = "as torch"

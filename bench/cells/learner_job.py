"""What a cell asks of its learner."""

from __future__ import annotations

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.learners.catalog import LearnerJob


def learner_job(config: CellConfig) -> LearnerJob:
    """The job of a cell.

    Raises:
        UsageError: Its method, regime or optimizer is unknown.
    """
    return LearnerJob(
        method=config.parts.method,
        regime=config.parts.regime,
        optimizer=config.parts.optimizer,
        changed=config.changed(),
    )

"""What a cell asks of its learner."""

from __future__ import annotations

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.learners.catalog import LearnerJob
from vcpo_bench.bench.optimizers.catalog import OPTIMIZERS
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.methods import parse_method


def learner_job(config: CellConfig) -> LearnerJob:
    """The job of a cell.

    Raises:
        UsageError: Its method, regime or optimizer is unknown.
    """
    return LearnerJob(
        method=parse_method(config.method),
        regime=REGIMES.parse(config.regime),
        optimizer=OPTIMIZERS.parse(config.optimizer),
        changed=config.changed(),
    )

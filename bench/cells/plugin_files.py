"""Which plug-in files a cell is made of, so that an edited one makes another cell."""

from __future__ import annotations

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.learners.catalog import LEARNERS
from vcpo_bench.bench.optimizers.catalog import OPTIMIZERS
from vcpo_bench.bench.policies.catalog import POLICIES
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.samplers.catalog import SAMPLERS
from vcpo_bench.bench.tasks import TASKS
from vcpo_bench.methods import parse_method
from vcpo_bench.naming.plugins import plugin_digests


def plugins_of(config: CellConfig) -> str:
    """The value of `CellConfig.plugins` under the code that is loaded now.

    Raises:
        UsageError: The method, task, regime, optimizer, policy, learner or sampler is unknown: its plug-in is not
            loaded.
    """
    named = (
        TASKS.class_of(config.task),
        REGIMES.class_of(config.regime),
        OPTIMIZERS.class_of(config.optimizer),
        POLICIES.class_of(config.policy),
        LEARNERS.class_of(config.learner),
        SAMPLERS.class_of(config.sampler),
    )
    return plugin_digests(parse_method(config.method).plugins, *(kind.source for kind in named))

"""Which plug-in files a cell is made of, so that an edited one makes another cell."""

from __future__ import annotations

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.naming.plugins import plugin_digests


def plugins_of(config: CellConfig) -> str:
    """The value of `CellConfig.plugins` under the code that is loaded now.

    Raises:
        UsageError: The method, task, regime, optimizer, policy, sampler or trainer is unknown: its plug-in is not
            loaded.
    """
    parts = config.parts
    others = (parts.task, parts.regime, parts.optimizer, parts.policy, parts.sampler, parts.trainer)
    return plugin_digests(parts.method.plugins, *(part.source for part in others))

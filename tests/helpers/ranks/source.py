"""Synchronous sampling on several ranks: each samples its own prompts, all receive the whole batch."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from torch import Tensor

from ranks.ranks import Ranks
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.source import StepInput
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.samplers.published import PublishedPolicy
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Trajectories, join
from vcpo_bench.errors import UsageError
from vcpo_bench.records import SYNCHRONOUS


class ParallelSource:
    """Source of batches at lag 0.

    Args:
        config: The cell.
        task: Its task.
        policy: The learner's policy.
        ranks: This process among the others.
    """

    def __init__(self, config: CellConfig, task: Task, policy: Policy, ranks: Ranks) -> None:
        self.sampler, self.ranks = TicketSampler(config, task, PublishedPolicy(policy, 1, "off", config.seed)), ranks
        share = config.prompts // ranks.count
        self.groups, self.prompts = range(ranks.rank * share, (ranks.rank + 1) * share), config.prompts

    def next_batch(self, update: int) -> StepInput:
        """See `Source.next_batch`."""
        began = perf_counter()
        tickets = [update * self.prompts + group for group in self.groups]
        own = join(update, list(self.sampler.run(tickets, update).values()))
        batch = Trajectories(update, **{name: self.ranks.gather(tensor) for name, tensor in own.tensors().items()})
        return StepInput(batch, float(batch.reward.mean()), False, perf_counter() - began)

    def tensors(self) -> dict[str, Tensor]:
        """See `Source.tensors`: between updates there is nothing."""
        return {}

    def state(self) -> dict[str, Any]:
        """See `Source.state`."""
        return {}

    def load(self, update: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """See `Source.load`."""

    def close(self) -> None:
        """See `Source.close`."""


def check_shares(config: CellConfig, count: int) -> None:
    """Check that ranks can train a cell.

    Raises:
        UsageError: It is not synchronous, or its prompts cannot be divided evenly.
    """
    if config.staleness or config.regime != SYNCHRONOUS:
        raise UsageError(
            f"{count} ranks train synchronously, not at staleness {config.staleness} under {config.regime}: "
            f"use staleness 0 and the regime {SYNCHRONOUS}"
        )
    if config.prompts % count:
        raise UsageError(f"{config.prompts} prompts cannot be divided evenly among {count} ranks: use a multiple")

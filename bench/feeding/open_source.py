"""From a cell to the source of its learner's batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_sampler
from vcpo_bench.bench.feeding.batch_generator import BatchGenerator
from vcpo_bench.bench.feeding.process_source import ProcessSource
from vcpo_bench.bench.feeding.sampler_handle import SamplerSetup
from vcpo_bench.bench.feeding.source import PlannedSource, Source
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler
from vcpo_bench.bench.feeding.virtual_source import VirtualSource
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape
from vcpo_bench.bench.regimes.build import build_schedule, check_method, service_times
from vcpo_bench.bench.regimes.expression import Regime, parse_regime
from vcpo_bench.bench.samplers.published import PublishedPolicy
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Method


def open_source(
    config: CellConfig,
    task: Task,
    policy: Policy,
    method: Method,
    logp: Callable[[Trajectories], Tensor],
    start: Path | None = None,
) -> tuple[Source, int]:
    """What hands batches to the learner of a cell, and the number of updates there will be.

    Args:
        config: The cell.
        task: Its task.
        policy: The policy that the learner trains; samplers read its weights.
        method: The learner's method.
        logp: Computes `[P, G, T]` log-probabilities of a batch under the policy, without gradient.
        start: Where a separate sampler process finds the start policy.

    Raises:
        UsageError: The regime's options do not fit the cell, or the method cannot run in it.
    """
    regime = parse_regime(config.regime)
    shape = CellShape(config.seed, config.prompts, config.responses, task.max_response)
    schedule = build_schedule(regime, config.staleness, shape)
    check_method(method.canonical, method.needs, schedule)
    updates = schedule.updates(config.steps)
    if isinstance(schedule, AsyncSchedule):
        return _asynchronous_source(config, task, policy, regime, schedule, start), updates
    published = _published(config, task, policy, regime)
    generator = BatchGenerator(config, task, published, regime.name != "inflight" or regime["cache"] == "keep")
    return PlannedSource(schedule, generator, logp if "proximal_logp" in method.needs else None), updates


def _asynchronous_source(
    config: CellConfig, task: Task, policy: Policy, regime: Regime, schedule: AsyncSchedule, start: Path | None
) -> Source:
    times, slots = service_times(regime), regime["slots"] or config.prompts
    if regime["clock"] == "wall":
        setup = SamplerSetup(config, regime["engine_noise"], slots, times, start, str(policy.device))
        return ProcessSource(schedule, policy, setup)
    return VirtualSource(schedule, TicketSampler(config, task, _published(config, task, policy, regime)), slots, times)


def _published(config: CellConfig, task: Task, policy: Policy, regime: Regime) -> PublishedPolicy:
    external = open_sampler(config, task, policy)
    return PublishedPolicy(policy, regime["publish_every"], regime["engine_noise"], config.seed, external)

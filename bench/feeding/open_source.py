"""From a cell to the source of its learner's batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig, plugins_of
from vcpo_bench.bench.cells.opening import open_sampler
from vcpo_bench.bench.feeding.batch_generator import BatchGenerator
from vcpo_bench.bench.feeding.process_source import ProcessSource
from vcpo_bench.bench.feeding.sampler_handle import SamplerSetup
from vcpo_bench.bench.feeding.source import PlannedSource, Source
from vcpo_bench.bench.feeding.ticket_sampler import TicketSampler
from vcpo_bench.bench.feeding.virtual_source import VirtualSource
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule, check_method
from vcpo_bench.bench.regimes.regime import Regime
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.tasks.catalog import check_turns
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method
from vcpo_bench.naming.plugins import plugin_files


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
    regime = config.parts.regime
    shape = CellShape(config.seed, config.prompts, config.responses, task.max_response)
    schedule = regime.schedule(config.staleness, shape)
    check_method(method.canonical, method.needs, schedule)
    check_turns(method.canonical, method.needs, config.parts.task)
    updates = schedule.updates(config.steps)
    if regime.asynchronous:
        return _asynchronous_source(config, task, policy, method, regime, schedule, start), updates
    generator = BatchGenerator(config, task, _published(config, task, policy, method, regime), regime.keeps_cache)
    return PlannedSource(schedule, generator, logp if "proximal_logp" in method.needs else None), updates


def _asynchronous_source(
    config: CellConfig,
    task: Task,
    policy: Policy,
    method: Method,
    regime: Regime,
    schedule: StalenessSchedule,
    start: Path | None,
) -> Source:
    service = regime.service
    assert service is not None
    assert isinstance(schedule, AsyncSchedule), f"{regime.name} is asynchronous: it must build an AsyncSchedule"
    if service.times.call and task.environment is None:
        raise UsageError(f"--regime {config.regime}: {config.task} has no environment that a call could wait for")
    slots = service.slots or config.prompts
    if regime.needs_process:
        plugins = plugin_files(plugins_of(config))
        setup = SamplerSetup(config, slots, service.times, start, str(policy.device), plugins)
        return ProcessSource(schedule, policy, setup)
    sampler = TicketSampler(config, task, _published(config, task, policy, method, regime))
    return VirtualSource(schedule, sampler, slots, service.times)


def _published(config: CellConfig, task: Task, policy: Policy, method: Method, regime: Regime) -> PublishedPolicy:
    external = open_sampler(config, task, policy)
    return PublishedPolicy.under(regime, policy, config.seed, external, regime.publish_every, method.needs)

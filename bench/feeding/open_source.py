"""From a cell to what feeds its learner."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_sampler
from vcpo_bench.bench.feeding.batch_generator import Generator
from vcpo_bench.bench.feeding.process_source import WallSource
from vcpo_bench.bench.feeding.sampler_handle import Setup
from vcpo_bench.bench.feeding.source import PlannedSource, Source
from vcpo_bench.bench.feeding.ticket_sampler import GroupSampler
from vcpo_bench.bench.feeding.virtual_source import VirtualSource
from vcpo_bench.bench.regimes.asynchronous import AsyncSchedule
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule, check_method
from vcpo_bench.bench.regimes.regime import REGIMES, Regime
from vcpo_bench.bench.samplers.published import Engine
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.training.learner import Learner


def build_source(config: CellConfig, task: Task, learner: Learner, start: Path | None = None) -> tuple[Source, int]:
    """What feeds the learner of a cell, and how many updates there will be.

    Args:
        config: The cell.
        task: Its task.
        learner: Its learner.
        start: Where a sampler process of its own finds the start policy.

    Raises:
        UsageError: The regime's options do not fit the cell, or the method cannot run in it.
    """
    regime = REGIMES.parse(config.regime)
    shape = CellShape(config.seed, config.prompts, config.responses, task.max_response)
    schedule = regime.schedule(config.staleness, shape)
    check_method(learner.method.canonical, learner.method.needs, schedule)
    return _source(config, task, learner, regime, schedule, start), schedule.updates(config.steps)


def _source(
    config: CellConfig,
    task: Task,
    learner: Learner,
    regime: Regime,
    schedule: StalenessSchedule,
    start: Path | None,
) -> Source:
    service = regime.service
    if service and regime.needs_process:
        assert isinstance(schedule, AsyncSchedule)
        slots = service.slots or config.prompts
        setup = Setup(config, regime.engine_noise, slots, service.times, start, str(learner.policy.device))
        return WallSource(schedule, learner.policy, setup)
    external = open_sampler(config, task, learner.policy)
    engine = Engine(learner.policy, regime.publish_every, regime.engine_noise, config.seed, external)
    if service:
        assert isinstance(schedule, AsyncSchedule)
        sampler = GroupSampler(config, task, engine)
        return VirtualSource(schedule, sampler, service.slots or config.prompts, service.times)
    generator = Generator(config, task, engine, regime.keeps_cache)
    return PlannedSource(schedule, generator, learner.logp if "proximal_logp" in learner.method.needs else None)

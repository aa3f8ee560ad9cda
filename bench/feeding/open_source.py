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
from vcpo_bench.bench.regimes.base import CellShape, StalenessSchedule
from vcpo_bench.bench.regimes.build import build_schedule, check_method, service_times
from vcpo_bench.bench.regimes.expression import Regime, parse_regime
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
    regime = parse_regime(config.regime)
    shape = CellShape(config.seed, config.prompts, config.responses, task.max_response)
    schedule = build_schedule(regime, config.staleness, shape)
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
    if isinstance(schedule, AsyncSchedule) and regime["clock"] == "wall":
        times, slots = service_times(regime), regime["slots"] or config.prompts
        setup = Setup(config, regime["engine_noise"], slots, times, start, str(learner.policy.device))
        return WallSource(schedule, learner.policy, setup)
    external = open_sampler(config, task, learner.policy)
    engine = Engine(learner.policy, regime["publish_every"], regime["engine_noise"], config.seed, external)
    if isinstance(schedule, AsyncSchedule):
        sampler = GroupSampler(config, task, engine)
        return VirtualSource(schedule, sampler, regime["slots"] or config.prompts, service_times(regime))
    generator = Generator(config, task, engine, regime.name != "inflight" or regime["cache"] == "keep")
    return PlannedSource(schedule, generator, learner.logp if "proximal_logp" in learner.method.needs else None)

"""``vcpo-bench probe``: replay a recorded run, keep the weights that lag asks for, sample from them, measure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv
import torch
from torch import Tensor

from vcpo_bench.bench.cell import CellConfig
from vcpo_bench.bench.model import Model
from vcpo_bench.bench.models import open_model
from vcpo_bench.bench.probe.checkpoint import Checkpoint, Row, probe_checkpoint
from vcpo_bench.bench.probe.updates import Estimators
from vcpo_bench.bench.recorded import RecordedCell, Replay, one_thread
from vcpo_bench.bench.staleness import CellShape, Order, build_schedule, check_method, parse_regime
from vcpo_bench.bench.staleness.engine import Engine
from vcpo_bench.bench.staleness.gate import AsyncSchedule
from vcpo_bench.bench.staleness.generation import Generator
from vcpo_bench.bench.staleness.plan import plan
from vcpo_bench.bench.staleness.schedule import StalenessSchedule
from vcpo_bench.bench.tables import RecordTable
from vcpo_bench.bench.tasks import Task, get_task
from vcpo_bench.bench.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method
from vcpo_bench.records import PROBES, PROBES_FOLDER

LEAST_BATCHES = 8
"""Fewer batches make no interval."""
_STALE, _FRESH, _CONTROL = 10**9, 2 * 10**9, 3 * 10**9
"""First batch index of each sample: streams that no run reads, the same at every checkpoint."""


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    """What to probe.

    Attributes:
        cell: The run.
        steps: Checkpoints, in updates.
        methods: Methods to measure; the first is what the others' signal-to-noise ratios are compared with.
        batches: Batches sampled from the behavior policy at each checkpoint.
        fresh: Batches sampled from the current policy for the true gradient.
    """

    cell: RecordedCell
    steps: Sequence[int]
    methods: Sequence[Method]
    batches: int = 64
    fresh: int = 256


def check_probe(spec: ProbeSpec) -> dict[int, int]:
    """The behavior version of each checkpoint, in order.

    Raises:
        UsageError: A checkpoint lies beyond the run, a sample is too small, a method's update is no function of fresh
            data, or the update due at a checkpoint consumes data of several policies.
    """
    if not spec.steps:
        raise UsageError("--at: the list is empty; give at least one update, such as 50,150")
    if not spec.methods:
        raise UsageError("--methods: the list is empty; give at least one value")
    for flag, value in (("--batches", spec.batches), ("--fresh", spec.fresh)):
        if value < LEAST_BATCHES:
            raise UsageError(f"{flag} {value}: give at least {LEAST_BATCHES}, or there is no interval")
    for step in spec.steps:
        spec.cell.check(step)
    schedule = _schedule(spec.cell.config)
    for method in spec.methods:
        _check_method(method, schedule)
    return {step: _version(spec.cell, schedule, step) for step in sorted(set(spec.steps))}


def _schedule(config: CellConfig) -> StalenessSchedule:
    shape = CellShape(config.seed, config.prompts, config.responses, get_task(config.task).max_response)
    return build_schedule(parse_regime(config.regime), config.staleness, shape)


def _check_method(method: Method, schedule: StalenessSchedule) -> None:
    check_method(method.canonical, method.needs, schedule)
    reasons = {
        "acts on the gradient before, so its update is no function of one batch": method.combine is not None,
        "borrows the step scales of another cell": method.needs_series is not None,
        "needs a proximal policy, which fresh data do not have": "proximal_logp" in method.needs,
    }
    for reason, holds in reasons.items():
        if holds:
            raise UsageError(f"{method.canonical}: {reason}; leave it out of --methods")


def _version(cell: RecordedCell, schedule: StalenessSchedule, step: int) -> int:
    """The one policy that sampled what update ``step`` consumes."""
    regime = cell.config.regime
    if isinstance(schedule, AsyncSchedule) or parse_regime(regime).given.get("epochs", 1) > 1:
        raise UsageError(f"{cell.key}: under {regime} there is no one policy to sample fresh batches from; use fifo")
    *_, planned = plan(schedule, step + 1)
    versions = set(planned.oldest) | set(planned.newest)
    if len(versions) > 1:
        raise UsageError(
            f"--at {step}: under {regime} that update consumes data of versions {min(versions)} to {max(versions)}; "
            "the probe needs one behavior policy, as with fifo"
        )
    return versions.pop()


def probe_cell(spec: ProbeSpec, say: Callable[[str], None]) -> list[Row]:
    """Replay the run once and measure at every checkpoint.

    Args:
        spec: What to probe.
        say: Receives a line about each checkpoint.

    Returns:
        Rows of ``records.PROBES``.

    Raises:
        UsageError: See ``check_probe``.
    """
    versions = check_probe(spec)
    with one_thread():
        replay = Replay(spec.cell, min(versions.values()))
        with closing(replay.trainer):
            rows: list[Row] = []
            for step, version in versions.items():
                replay.to(step, keep=set(versions.values()))
                say(replay.summary())
                checkpoint = _checkpoint(spec, replay, version)
                rows += [{"key": spec.cell.key} | row for row in probe_checkpoint(checkpoint, spec.methods)]
    return rows


def _checkpoint(spec: ProbeSpec, replay: Replay, version: int) -> Checkpoint:
    trainer = replay.trainer
    behavior = copy.deepcopy(trainer.policy)
    behavior.load_state_dict(replay.snapshots[version])
    regime = parse_regime(spec.cell.config.regime)
    task, now = trainer.task, trainer.step
    stale = _sampler(spec.cell.config, task, behavior, version, regime["engine_noise"])
    fresh = _sampler(spec.cell.config, task, trainer.policy, now, "off")
    return Checkpoint(
        step=now,
        lag=now - version,
        estimators=_estimators(spec.cell, trainer),
        stale=[stale(_STALE + i) for i in range(spec.batches)],
        fresh=[fresh(_FRESH + i) for i in range(spec.fresh)],
        control=[fresh(_CONTROL + i) for i in range(spec.batches)],
        preconditioner=preconditioner(trainer.learner.optimizer),
        displacement=_flat(trainer.policy) - _flat(behavior) if now > version else None,
    )


def _sampler(config: CellConfig, task: Task, policy: Model, version: int, noise: str) -> Callable[[int], Trajectories]:
    """Batches of a run's size by their index, as the run's own sampler would have drawn them with these weights."""
    engine = Engine(policy, 1, noise, config.seed)
    engine.publish(0)
    generator = Generator(config, task, engine)
    return lambda index: generator.run([Order(index)], version, [config.prompts])[0]


def _estimators(cell: RecordedCell, trainer: Trainer) -> Callable[[Sequence[Method]], Estimators]:
    """Methods at the checkpoint; only the run's own has a state there."""
    reference = open_model(cell.config, trainer.task, cell.start, cell.config.device).state_dict()
    states = {trainer.config.method: dict(trainer.learner.method_state)}
    return lambda methods: Estimators(trainer.policy, methods, reference, states)


def _flat(policy: Model) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in policy.trainable()])


def preconditioner(optimizer: torch.optim.Optimizer) -> Tensor | None:
    """``[D]`` 1 / (sqrt(v / (1 - beta2^t)) + eps) of AdamW, v its second moment; None before its first step."""
    pieces = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if not state:
                return None
            moment = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
            pieces.append(1 / (moment.sqrt() + group["eps"]).flatten())
    return torch.cat(pieces)


def default_path(cell: RecordedCell) -> Path:
    """Where the table of a cell lies, beside its results."""
    return cell.results / PROBES_FOLDER / f"{cell.key}.parquet"


def run_probe(spec: ProbeSpec, target: Path, say: Callable[[str], None]) -> None:
    """Probe, and write the table as Parquet, or as CSV where the name ends so; an earlier one is replaced.

    Raises:
        UsageError: See ``check_probe``; or the file cannot be written, which is found before anything is measured.
    """
    check_probe(spec)
    draft = target.with_name(f".{target.name}.draft")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.touch()
    except OSError as error:
        raise UsageError(f"--out {target}: cannot be written ({error.strerror}); name another file") from error
    table = RecordTable(PROBES, "basic")
    for row in probe_cell(spec, say):
        table.append(row)
    if target.suffix == ".csv":
        pyarrow.csv.write_csv(table.arrow(), draft)
    else:
        table.write(draft)
    draft.replace(target)

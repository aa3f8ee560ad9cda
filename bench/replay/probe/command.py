"""`vcpo-bench lab probe`: replay a recorded run, sample from its current and stale weights, measure updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow.csv
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy
from vcpo_bench.bench.cells.parquet_table import RecordTable
from vcpo_bench.bench.feeding.batch_generator import BatchGenerator
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.regimes import Order
from vcpo_bench.bench.replay.probe.point import ProbePoint, Row, probe_point
from vcpo_bench.bench.replay.probe.spec import ProbeSpec, check_memory, check_probe
from vcpo_bench.bench.replay.probe.updates import Estimators
from vcpo_bench.bench.replay.recorded_cell import RecordedCell
from vcpo_bench.bench.replay.replay import Replay, one_thread, weights_of
from vcpo_bench.bench.samplers.engines.published import PublishedPolicy
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import check_writable, replacing
from vcpo_bench.files.folders import made
from vcpo_bench.files.parquet import write_parquet
from vcpo_bench.methods import Method
from vcpo_bench.progress import track
from vcpo_bench.records import PROBES, PROBES_FOLDER

_STALE, _FRESH, _CONTROL = 10**9, 2 * 10**9, 3 * 10**9
"""First batch index of each sample: random streams that no run reads, the same at every checkpoint."""


def probe_cell(spec: ProbeSpec, say: Callable[[str], None]) -> list[Row]:
    """Replay the run once and measure at every checkpoint.

    Returns:
        Rows of `records.PROBES`.

    Raises:
        UsageError: See `check_probe`.
    """
    versions = check_probe(spec)
    with one_thread():
        replay = Replay(spec.cell, min(versions.values()))
        with closing(replay.trainer):
            check_memory(spec, sum(parameter.numel() for parameter in replay.trainer.policy.trainable()))
            rows: list[Row] = []
            for step, version in track(versions.items(), "probing checkpoints", len(versions)):
                replay.to(step, keep=set(versions.values()))
                say(replay.summary())
                point = _point(spec, replay, version)
                rows += [{"key": spec.cell.key} | row for row in probe_point(point, spec.methods)]
    return rows


def _point(spec: ProbeSpec, replay: Replay, version: int) -> ProbePoint:
    trainer, behavior = replay.trainer, replay.snapshots[version]
    config, task, now = spec.cell.config, trainer.task, trainer.step
    trainer.policy.records_distributions |= any("vocabulary_logp" in method.needs for method in spec.methods)
    with weights_of(trainer.policy, behavior):
        noise = config.parts.regime.engine_noise
        draw = _sampler(config, task, trainer.policy, version, noise)
        stale = [draw(_STALE + i) for i in range(spec.batches)]
    draw = _sampler(config, task, trainer.policy, now, "off")
    return ProbePoint(
        step=now,
        lag=now - version,
        estimators=_estimators(spec.cell, trainer),
        stale=stale,
        fresh=[draw(_FRESH + i) for i in range(spec.fresh)],
        control=[draw(_CONTROL + i) for i in range(spec.batches)],
        preconditioner=preconditioner(trainer.learner.optimizer),
        displacement=_flat(trainer.policy.trained_state()) - _flat(behavior) if now > version else None,
    )


def _sampler(config: CellConfig, task: Task, policy: Policy, version: int, noise: str) -> Callable[[int], Trajectories]:
    """Draws batch `index`, as the run's own sampler would have with these weights."""
    engine = PublishedPolicy(policy, 1, noise, config.seed, records_distributions=policy.records_distributions)
    engine.publish(0)
    generator = BatchGenerator(config, task, engine)
    return lambda index: generator.run([Order(index)], version, [config.prompts])[0]


def _estimators(cell: RecordedCell, trainer: Trainer) -> Callable[[Sequence[Method]], Estimators]:
    """Estimators of methods at the checkpoint; only the run's own method has a state there."""
    config, policy = cell.config, trainer.policy
    states = {config.method: dict(trainer.learner.method_state)}

    def reference() -> Policy:
        return trainer.learner.reference or open_policy(config, trainer.task, cell.start, str(policy.device))

    return lambda methods: Estimators(policy, methods, reference, states, config.micro_tokens)


def _flat(state: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([tensor.flatten().cpu() for tensor in state.values()])


def preconditioner(optimizer: torch.optim.Optimizer) -> Tensor | None:
    """`[D]` 1 / (sqrt(v / (1 - beta2^t)) + eps) of AdamW, v its second moment.

    In main memory, like everything it is compared with. None before its first step, and where a parameter has no second
    moment: other optimizers are not one factor per weight.
    """
    pieces = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state.get(parameter)
            if not state or "exp_avg_sq" not in state:
                return None
            moment = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
            pieces.append(1 / (moment.sqrt() + group["eps"]).flatten().cpu())
    return torch.cat(pieces)


def default_path(cell: RecordedCell) -> Path:
    """Where the table of a cell is, in its results folder."""
    return cell.results / PROBES_FOLDER / f"{cell.key}.parquet"


def run_probe(spec: ProbeSpec, out: Path | None, say: Callable[[str], None]) -> Path:
    """Probe and write the table, replacing an earlier one.

    Args:
        spec: What to probe.
        out: File to write, Parquet or, if its name ends in `.csv`, CSV; None: `default_path`.
        say: Called with one line per checkpoint.

    Returns:
        The file written.

    Raises:
        UsageError: See `check_probe`; or the file cannot be written, which is checked before anything is measured.
    """
    check_probe(spec)
    target = out or default_path(spec.cell)
    typed, below = (True, None) if out else (False, spec.cell.results)
    try:
        if below:
            made(below, PROBES_FOLDER)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
        check_writable(target, typed, below)
    except OSError as error:
        raise UsageError(f"--out {target}: cannot be written ({error.strerror}); choose another file") from error
    table = RecordTable(PROBES, "basic")
    for row in probe_cell(spec, say):
        table.append(row)
    if target.suffix == ".csv":
        with replacing(target, typed, below) as file:
            pyarrow.csv.write_csv(table.arrow(), file)
    else:
        write_parquet(target, table.arrow(), typed, below)
    return target

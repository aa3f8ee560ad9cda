"""From a cell to its trainer: task, policy, learner, source and tables."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.cells.parquet_table import includes
from vcpo_bench.bench.feeding.open_source import open_source
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_settings import LearnerSettings
from vcpo_bench.bench.training.step_observer import StepObserver
from vcpo_bench.bench.training.step_recorder import StepRecorder
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.methods import Method
from vcpo_bench.records.diagnostic import GradientDiagnostic
from vcpo_bench.records.steps import DIAGNOSTICS


def build_trainer(
    config: CellConfig,
    method: Method | None = None,
    start: Path | None = None,
    device: str = "",
    observer: StepObserver | None = None,
) -> Trainer:
    """Everything that trains a cell, at its first update.

    Args:
        config: The cell.
        method: The method where it carries more than its expression says (borrowed step scales).
        start: File with the start policy or folder of the language model; None: the one that ships with the task.
        device: Device to train on, such as `cuda:1`; empty: the cell's own.
        observer: May end the cell early; None: it trains to its end.

    Raises:
        UsageError: The task, start policy or device is not available, or the method cannot run in the regime.
    """
    task = open_task(config, start)
    policy = open_policy(config, task, start, device or config.device)
    learner = build_learner(config, policy, method)
    source, updates = open_source(config, task, policy, learner.method, learner.logp, start)
    return Trainer(config, task, learner, source, updates, build_recorder(config), observer)


def build_learner(config: CellConfig, policy: Policy, method: Method | None = None) -> Learner:
    """The learner of a cell; it measures what the cell's record level asks for."""
    diagnostics = [one for one in DIAGNOSTICS.values() if isinstance(one, GradientDiagnostic)]
    settings = LearnerSettings(
        lr=config.lr,
        lr_warmup=config.lr_warmup,
        weight_decay=config.weight_decay,
        optimizer=config.parts.optimizer,
        diagnostics=[one for one in diagnostics if includes(config.record, one.level)],
        measure_norms=includes(config.record, "full"),
        micro_tokens=config.micro_tokens,
        largest_lag=config.staleness + config.parts.regime.publish_every - 1,
    )
    return Learner(policy, method or config.parts.method, settings)


def build_recorder(config: CellConfig) -> StepRecorder:
    """Empty tables for a cell."""
    regime = config.parts.regime
    return StepRecorder(config.record, events=regime.asynchronous, waits=regime.needs_process)

"""A cell in training inside TRL: its tables, its evaluations, and when it has ended."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from vcpo_bench.adapters.coefficients import Decision, StepRows
from vcpo_bench.adapters.trl.cell.prompts import CellPrompts
from vcpo_bench.adapters.trl.cell.rows import Sampled, learner_step, trajectories
from vcpo_bench.analysis.monitoring.stop_on_alarm import StopOnAlarm
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.feeding.source import StepInput
from vcpo_bench.bench.regimes import CellShape
from vcpo_bench.bench.tasks.text.bound import BoundTask
from vcpo_bench.bench.trainers.job import TrainerJob
from vcpo_bench.bench.training.build import build_recorder
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.learner_settings import warmed
from vcpo_bench.records import STEPS_FILE


class CellRun:
    """What a cell has beside TRL's trainer. Every process has one, and they agree in all but the measured times.

    Attributes:
        task: Its task, in tokens.
        policy: The model that is trained, as the loop of this project evaluates it.
        prompts: Everything it samples responses to.
        recorder: Its tables.
        ess: Raw ESS ratio of the newest update.
        stopped: Why a detector ended it; else empty.
    """

    def __init__(self, job: TrainerJob) -> None:
        self.job, self.config = job, CellConfig.recorded(job.config)
        model = Path(job.model)
        task = open_task(self.config, model)
        assert isinstance(task, BoundTask)
        self.task = task
        self.policy: Any = open_policy(self.config, task, model)
        shape = CellShape(self.config.seed, self.config.prompts, self.config.responses, task.max_response)
        self.schedule = self.config.parts.regime.schedule(self.config.staleness, shape)
        self.prompts = CellPrompts(task, self.config.seed, self.config.prompts, job.updates + self.config.staleness)
        self.recorder = build_recorder(self.config)
        self.ess, self.stopped = 1.0, ""
        self._observer = StopOnAlarm(self.config.stop) if self.config.stop else None
        if job.resume:
            self.recorder.read(Path(job.resume))
        for row in range(self.step if self._observer else 0):
            self._observe(row)

    @property
    def step(self) -> int:
        """Updates done."""
        return self.recorder.updates

    @property
    def status(self) -> str:
        """As `Trainer.status`."""
        return self.recorder.status(self.job.updates) or ("stopped_by" if self.stopped else "")

    def rate(self, step: int) -> float:
        """Learning rate of an update, before the method's step scale."""
        return warmed(self.config.lr, self.config.lr_warmup, step)

    def record(self, rows: StepRows, decision: Decision, sampled: Sampled, norm: float) -> None:
        """Record one update."""
        batch = trajectories(rows, sampled, self.prompts.tensor, self.config.prompts)
        given = StepInput(batch, sampled.reward, self.schedule.filling(self.step), sampled.seconds_sample)
        done = learner_step(rows, decision, sampled, norm, self.config.prompts)
        self.ess = self.recorder.update(self.step, given, done, self.rate(self.step))
        if self._observer:
            self._observe(-1)

    def _observe(self, row: int) -> None:
        assert self._observer is not None
        self.stopped = self._observer.observe(self.recorder.tables[STEPS_FILE].row(row))

    @property
    def evaluation_due(self) -> bool:
        """As `Trainer.evaluation_due`."""
        return self.step % self.config.eval_every == 0 or bool(self.status)

    def evaluate(self) -> None:
        """Evaluate the model as it is, on the same prompts and with the same noise as every other cell."""
        began = perf_counter()
        training = self.policy.network.training
        self.policy.network.eval()
        result = evaluate(self.policy, self.task, self.config.eval_prompts)
        self.policy.network.train(training)
        self.recorder.evaluation(self.step, result, perf_counter() - began)

"""Training of one cell, one update at a time, with a state that can be saved and restored bit for bit."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.feeding.source import Source, StepInput, under
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.training.checkpoint import read_state, write_state
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.training.step_observer import StepObserver
from vcpo_bench.bench.training.step_recorder import MAX_SKIPPED, StepRecorder
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records import STEPS_FILE


class Trainer:
    """One cell in training; `training.build.build_trainer` makes one from a cell.

    Args:
        config: The cell.
        task: Task to evaluate on.
        learner: Learner, which holds the policy.
        source: Source of the batches.
        updates: Number of updates of the whole run.
        recorder: Tables to record into.
        observer: May end the cell early; None: it trains to its end.

    Attributes:
        step: Updates done.
        stopped: Why the observer ended the cell, or empty.
    """

    def __init__(
        self,
        config: CellConfig,
        task: Task,
        learner: Learner,
        source: Source,
        updates: int,
        recorder: StepRecorder,
        observer: StepObserver | None = None,
    ) -> None:
        self.config, self.task, self.learner = config, task, learner
        self.source, self.updates = source, updates
        self.recorder, self.observer = recorder, observer
        self.step = 0
        self.skipped = 0
        self.stopped = ""

    @property
    def key(self) -> str:
        """Key of the cell, which its checkpoints carry."""
        return self.config.key(self.learner.method.version)

    @property
    def policy(self) -> Policy:
        """What is trained."""
        return self.learner.policy

    @property
    def status(self) -> str:
        """`completed`, `nan`, `stopped_by`, or empty while there is something left to do."""
        if self.skipped >= MAX_SKIPPED:
            return "nan"
        if self.step >= self.updates:
            return "completed"
        return "stopped_by" if self.stopped else ""

    def advance(self) -> tuple[float, float]:
        """Sample, consume, update, record. Returns the sampled reward and the raw ESS ratio of this update."""
        if self.step == 0:
            self._evaluate()
        given = self.source.next_batch(self.step)
        ess = self.record(given, self.learner.update(given.batch, self.step))
        if self.evaluation_due:
            self._evaluate()
        return given.sampled_reward, ess

    def record(self, given: StepInput, done: LearnerStep) -> float:
        """Count an update that was just made, and record it. Returns the raw ESS ratio of its batch."""
        ess = self.recorder.update(self.step, given, done, self.learner.rate(self.step))
        self.skipped = self.skipped + 1 if done.nonfinite else 0
        self.step += 1
        if self.observer:
            self.stopped = self.observer.observe(self.recorder.tables[STEPS_FILE].row(-1))
        return ess

    @property
    def evaluation_due(self) -> bool:
        """Whether the policy as it is now is evaluated: at the start, every `eval_every` updates, and at the end."""
        return self.step % self.config.eval_every == 0 or bool(self.status)

    def _evaluate(self) -> None:
        began = perf_counter()
        result = evaluate(self.policy, self.task, self.config.eval_prompts)
        self.recorder.evaluation(self.step, result, perf_counter() - began)

    def save(self, folder: Path) -> None:
        """Write everything that the rest of the run depends on, and the tables so far."""
        self.recorder.write(folder)
        tensors = self.learner.tensors()
        tensors |= {f"source/{name}": tensor for name, tensor in self.source.tensors().items()}
        scalars = {"step": self.step, "skipped": self.skipped, "source": self.source.state()}
        write_state(folder, self.key, tensors, scalars | {"method": self.config.method})

    def load(self, folder: Path) -> None:
        """Restore the state that `save` wrote.

        From a run of another method (a fork), everything is restored but what belongs to that method: its own state,
        and its count of skipped updates.

        Raises:
            DamagedResultError: It is damaged, is of another cell, or is not what this version writes.
            OSError: The disk cannot be read at the moment.
        """
        scalars, tensors = read_state(folder, self.config, self.key)
        try:
            self._restore(folder, scalars, tensors)
        except UsageError:
            raise
        except (KeyError, ValueError, TypeError) as error:
            raise DamagedResultError(f"cannot be used ({error})", folder) from error

    def _restore(self, folder: Path, scalars: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        same_method = scalars.get("method", self.config.method) == self.config.method
        self.step, self.skipped = int(scalars["step"]), int(scalars["skipped"]) if same_method else 0
        self.learner.load(tensors, same_method)
        self.source.load(self.step, under(tensors, "source/"), scalars["source"])
        self.recorder.read(folder)
        if self.observer:
            for index in range(self.recorder.updates):
                self.stopped = self.observer.observe(self.recorder.tables[STEPS_FILE].row(index))

    def close(self) -> None:
        """Release the source and the learner: a sampler process, a place on a server."""
        self.source.close()

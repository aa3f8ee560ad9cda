"""Training of one cell, one update at a time, with a state that can be saved and taken up again bit for bit."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.cells.parquet_table import includes
from vcpo_bench.bench.feeding.open_source import open_source
from vcpo_bench.bench.feeding.source import Source, under
from vcpo_bench.bench.regimes import REGIMES
from vcpo_bench.bench.running.observers import StepObserver
from vcpo_bench.bench.training.evaluation import evaluate
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.training.ranks.learner import ParallelLearner
from vcpo_bench.bench.training.ranks.ranks import Ranks
from vcpo_bench.bench.training.ranks.source import ParallelSource
from vcpo_bench.bench.training.recorder import Recorder
from vcpo_bench.methods import Method, parse_method
from vcpo_bench.records import STEPS_FILE

MAX_SKIPPED = 3
"""Updates in a row whose evidence is not finite before a cell ends as `nan`."""


class Trainer:
    """One cell in training.

    Args:
        config: The cell.
        method: The method where it carries more than its expression says (borrowed step scales).
        start: File with the start policy or folder of the language model; None: the one that ships with the task.
        device: Where to compute; a `cuda` cell may name one, such as `cuda:1`.
        observer: May end the cell early; None: it trains to its end.
        ranks: Other processes that train the same cell together with this one; None: it trains alone.

    Attributes:
        step: Updates done.
        stopped: Why the observer ended the cell, or empty.
        updates: Updates of the whole run.
        source: Feeds the learner.
        recorder: The tables so far.
    """

    def __init__(
        self,
        config: CellConfig,
        method: Method | None = None,
        start: Path | None = None,
        device: str = "",
        observer: StepObserver | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.config = config
        self.observer = observer
        self.stopped = ""
        self.task = open_task(config, start)
        self.policy = open_policy(config, self.task, start, device or config.device)
        watch_gradient, measure_norms = (includes(config.record, level) for level in ("diagnostics", "full"))
        chosen = method or parse_method(config.method)
        self.ranks = ranks
        kind = partial(ParallelLearner, ranks) if ranks else Learner
        self.learner: Learner = kind(
            self.policy,
            chosen,
            config.lr,
            watch_gradient,
            measure_norms,
            micro_tokens=config.micro_tokens,
            weight_decay=config.weight_decay,
        )
        self.recorder = recorder_of(config)
        self.step = 0
        self.skipped = 0
        self.source: Source
        if ranks:
            self.source, self.updates = ParallelSource(config, self.task, self.policy, ranks), config.steps
        else:
            self.source, self.updates = open_source(config, self.task, self.policy, chosen, self.learner.logp, start)

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
        done = self.learner.update(given.batch, self.step)
        ess = self.recorder.update(self.step, given, done, self.config.lr)
        self.skipped = self.skipped + 1 if done.nonfinite else 0
        self.step += 1
        if self.observer:
            self.stopped = self.observer.observe(self.recorder.tables[STEPS_FILE].row(-1))
        if self.step % self.config.eval_every == 0 or self.status:
            self._evaluate()
        return given.sampled_reward, ess

    def _evaluate(self) -> None:
        if self.ranks and self.ranks.rank:
            return  # the first one does, and the others wait for it in the next update
        began = perf_counter()
        result = evaluate(self.policy, self.task)
        self.recorder.evaluation(self.step, result, perf_counter() - began)

    def save(self, folder: Path) -> None:
        """Write all that the rest of the run depends on, and the tables so far."""
        tensors: dict[str, Tensor] = {f"policy/{k}": v for k, v in self.policy.trained_state().items()}
        tensors |= self._optimizer_tensors()
        tensors |= {f"method/{k}": v for k, v in self.learner.method_state.items()}
        if self.learner.previous_gradient is not None:
            tensors["previous_gradient"] = self.learner.previous_gradient
        tensors |= {f"source/{name}": tensor for name, tensor in self.source.tensors().items()}
        save_file({k: v.cpu().contiguous() for k, v in tensors.items()}, folder / "state.safetensors")
        scalars = {"step": self.step, "skipped": self.skipped, "source": self.source.state()}
        scalars["method"] = self.config.method
        (folder / "state.json").write_text(json.dumps(scalars))
        self.recorder.write(folder)

    def load(self, folder: Path) -> None:
        """Take up the state that `save` wrote.

        From a run of another method (a fork) all is taken up but what belongs to that method: its own state, and its
        count of skipped updates.
        """
        scalars: dict[str, Any] = json.loads((folder / "state.json").read_text())
        self.step, self.skipped = int(scalars["step"]), int(scalars["skipped"])
        # cloned: a tensor inside the file's buffer is aligned differently, and BLAS then sums in another order
        tensors = {name: tensor.clone() for name, tensor in load_file(folder / "state.safetensors").items()}
        self.policy.load_trained(under(tensors, "policy/"))
        self._load_optimizer(under(tensors, "optimizer/"))
        if scalars.get("method", self.config.method) == self.config.method:
            self.learner.method_state = under(tensors, "method/")
        else:
            self.skipped = 0
        self.learner.previous_gradient = tensors.get("previous_gradient")
        if self.learner.previous_gradient is not None:
            self.learner.previous_gradient = self.learner.previous_gradient.to(self.policy.device)
        self.source.load(self.step, under(tensors, "source/"), scalars["source"])
        self.recorder.read(folder)
        if self.observer:
            for index in range(self.recorder.updates):
                self.observer.observe(self.recorder.tables[STEPS_FILE].row(index))

    def close(self) -> None:
        """Let go of what feeds the learner: a sampler process, where there is one."""
        self.source.close()

    def _optimizer_tensors(self) -> dict[str, Tensor]:
        state = self.learner.optimizer.state_dict()["state"]
        return {f"optimizer/{i}/{k}": v for i, values in state.items() for k, v in values.items()}

    def _load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            index, _, key = name.partition("/")
            state.setdefault(int(index), {})[key] = tensor
        groups = self.learner.optimizer.state_dict()["param_groups"]
        self.learner.optimizer.load_state_dict({"state": state, "param_groups": groups})


def recorder_of(config: CellConfig) -> Recorder:
    """Empty tables for a cell."""
    return Recorder(config.record, events=REGIMES.parse(config.regime).asynchronous)

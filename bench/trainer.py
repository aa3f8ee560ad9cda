"""Training of one cell, one update at a time, with a state that can be saved and taken up again bit for bit."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from vcpo_bench.bench.cell import CellConfig
from vcpo_bench.bench.evaluation import evaluate
from vcpo_bench.bench.learner import Learner
from vcpo_bench.bench.recorder import Recorder
from vcpo_bench.bench.sampling import sample
from vcpo_bench.bench.schedule import Fifo
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tables import includes
from vcpo_bench.bench.tasks import get_task
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.bench.warmup import load_warm_start
from vcpo_bench.methods import Method, parse_method

MAX_SKIPPED = 3
"""Updates in a row whose evidence is not finite before a cell ends as ``nan``."""


class Trainer:
    """One cell in training.

    Args:
        config: The cell.
        method: The method where it carries more than its expression says (borrowed step scales).
        start: File with the start policy; None: the one that ships with the task.

    Attributes:
        step: Updates done.
        recorder: The tables so far.
    """

    def __init__(self, config: CellConfig, method: Method | None = None, start: Path | None = None) -> None:
        self.config = config
        self.task = get_task(config.task)
        self.policy = load_warm_start(self.task, start)
        self.learner = Learner(
            self.policy, parse_method(config.method), config.lr, includes(config.record, "diagnostics")
        )
        self.schedule = Fifo(config.staleness)
        self.queue: dict[int, Trajectories] = {}
        self.recorder = Recorder(config.record)
        self.step = 0
        self.skipped = 0

    @property
    def status(self) -> str:
        """``completed``, ``nan``, or empty while there is something left to do."""
        if self.skipped >= MAX_SKIPPED:
            return "nan"
        return "completed" if self.step >= self.config.steps else ""

    def advance(self) -> tuple[float, float]:
        """Sample, consume, update, record. Returns the sampled reward and the raw ESS ratio of this update."""
        if self.step == 0:
            self._evaluate()
        began = perf_counter()
        fresh = [self._sample(index) for index in self.schedule.sampled_before(self.step)]
        self.queue.update({batch.index: batch for batch in fresh})
        sampled = perf_counter()
        batch = self.queue.pop(self.schedule.consumed_by(self.step))
        self._check_lag(batch)
        done = self.learner.update(batch, self.step)
        ess = self.recorder.update(self.step, fresh[-1], batch, done, self.config.lr, sampled - began)
        self.skipped = self.skipped + 1 if done.nonfinite else 0
        self.step += 1
        if self.step % self.config.eval_every == 0 or self.status:
            self._evaluate()
        return float(fresh[-1].reward.mean()), ess

    def _sample(self, index: int) -> Trajectories:
        """Batch ``index`` under the current weights; prompts and noise depend on seed and index alone."""
        P, G = self.config.prompts, self.config.responses
        prompts = self.task.training_prompts(self.config.seed, index, P)
        noise = torch.from_numpy(uniforms(self.config.seed, "sampling", index, P * G, self.task.max_response))
        rollout = sample(self.policy, prompts, noise, self.task.eos)
        reward = self.task.reward(prompts, rollout.responses, rollout.mask)
        shape = (P, G, self.task.max_response)
        return Trajectories(
            index=index,
            prompts=prompts,
            responses=rollout.responses.view(shape),
            behavior_logp=rollout.logp.view(shape),
            mask=rollout.mask.view(shape),
            reward=reward.view(P, G),
            version=torch.full(shape, self.step, dtype=torch.int64),
        )

    def _check_lag(self, batch: Trajectories) -> None:
        lag, wanted = self.step - batch.oldest(), self.schedule.lag(self.step)
        if not bool((lag == wanted).all()):
            raise AssertionError(f"update {self.step} realised lag {int(lag.min())}..{int(lag.max())}, not {wanted}")

    def _evaluate(self) -> None:
        began = perf_counter()
        result = evaluate(self.policy, self.task)
        self.recorder.evaluation(self.step, result, perf_counter() - began)

    def save(self, folder: Path) -> None:
        """Write all that the rest of the run depends on, and the tables so far."""
        tensors: dict[str, Tensor] = {f"policy/{k}": v for k, v in self.policy.state_dict().items()}
        tensors |= self._optimizer_tensors()
        tensors |= {f"method/{k}": v for k, v in self.learner.method_state.items()}
        if self.learner.previous_gradient is not None:
            tensors["previous_gradient"] = self.learner.previous_gradient
        for index, batch in self.queue.items():
            tensors |= {f"queue/{index}/{k}": v for k, v in batch.tensors().items()}
        save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "state.safetensors")
        scalars = {"step": self.step, "skipped": self.skipped}
        (folder / "state.json").write_text(json.dumps(scalars))
        self.recorder.write(folder)

    def load(self, folder: Path) -> None:
        """Take up the state that ``save`` wrote."""
        scalars: dict[str, Any] = json.loads((folder / "state.json").read_text())
        self.step, self.skipped = int(scalars["step"]), int(scalars["skipped"])
        # cloned: a tensor inside the file's buffer is aligned differently, and BLAS then sums in another order
        tensors = {name: tensor.clone() for name, tensor in load_file(folder / "state.safetensors").items()}
        self.policy.load_state_dict(_under(tensors, "policy/"))
        self._load_optimizer(_under(tensors, "optimizer/"))
        self.learner.method_state = _under(tensors, "method/")
        self.learner.previous_gradient = tensors.get("previous_gradient")
        queue = _under(tensors, "queue/")
        indices = sorted({int(name.split("/")[0]) for name in queue})
        self.queue = {i: Trajectories(i, **_under(queue, f"{i}/")) for i in indices}
        self.recorder.read(folder)

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


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}

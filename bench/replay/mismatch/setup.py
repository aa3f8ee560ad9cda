"""A trainer's policy and a sampler side by side, with prompts and noise that every path shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_sampler
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.replay.mismatch.path import SamplingPath
from vcpo_bench.bench.samplers.engines.base import InflightEngine, PolicyEngine
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.trajectories import Responses, Rollout
from vcpo_bench.errors import UsageError
from vcpo_bench.progress import track

_ROWS = 64
"""Trajectories scored at once, on every path."""


class Drawn(NamedTuple):
    """What a path gave.

    Attributes:
        log_ratio: float64 [B, T], the trainer's minus the sampler's log-probability of each token; 0 at padding.
        mask: bool [B, T].
    """

    log_ratio: Tensor
    mask: Tensor


@dataclass
class MismatchSetup:
    """What is measured.

    Attributes:
        policy: The trainer's policy; it scores every token.
        task: Prompts and the end token.
        engine: Inference engine that samples; None: the policy does, in this process.
        prompts: int64 [P, Lp], held out.
        responses: Responses per prompt.
        older: Weights before the updates that a lag leaves out.
    """

    policy: Policy
    task: Task
    engine: InflightEngine | None
    prompts: Tensor
    responses: int
    older: Mapping[str, Tensor]
    _pushes: int = 0

    @property
    def head(self) -> set[str]:
        """Names of the parameters of the output head."""
        own = {id(parameter) for parameter in self.policy.output_head().parameters()}
        return {name for name, parameter in self.policy.named_parameters() if id(parameter) in own}

    @property
    def exact(self) -> SamplingPath:
        """The path on which the sampler holds the trainer's weights and nothing else differs."""
        return SamplingPath({name: weight.detach() for name, weight in self.policy.named_parameters()})

    def draw(self, path: SamplingPath) -> Drawn:
        """Responses drawn on a path, scored by the trainer. Prompts and noise are the same on every path."""
        rollout = _joined(list(self._rollouts(path)))
        rows = self.prompts.repeat_interleave(self.responses, 0)
        scored = []
        for begin in range(0, len(rows), _ROWS):
            part = slice(begin, begin + _ROWS)
            given = Responses(rows[part], rollout.responses[part], rollout.mask[part])
            with torch.no_grad():
                scored.append(self.policy.score(given).logp.cpu())
        gap = torch.cat(scored).double() - rollout.logp.double()
        return Drawn(torch.where(rollout.mask, gap, 0.0), rollout.mask)

    def close(self) -> None:
        """Release the engine."""
        if self.engine:
            self.engine.close()

    def _rollouts(self, path: SamplingPath) -> Iterator[Rollout]:
        engine = self.engine or PolicyEngine(self.policy, copied=True, truncation=path.truncation)
        self._pushes += 1
        engine.set_weights(path.weights.items(), self._pushes)
        noise = torch.from_numpy(uniforms(0, "mismatch", 0, len(self.prompts) * self.responses, self.task.max_response))
        size = path.prompts_at_once or len(self.prompts)
        for begin in range(0, len(self.prompts), size):
            prompts = self.prompts[begin : begin + size]
            draws = noise[begin * self.responses : (begin + size) * self.responses]
            if path.after_token is None:
                yield engine.generate(prompts, draws, self.task.eos)
            else:
                assert isinstance(engine, PolicyEngine)
                yield _token_by_token(engine.model, Draw(prompts, draws, self.task.eos), path)


def open_setup(config: CellConfig, start: Path | None, lag: int, device: str = "") -> MismatchSetup:
    """Train a policy for some updates, and open the cell's sampler beside it.

    Args:
        config: The cell: task, model, sampler, sizes, learning rate, seed. Its method makes the updates.
        start: File of the start policy or folder of the language model; None: the one that ships with the task.
        lag: Updates.
        device: Device, such as `cuda:1`; empty: the cell's own.

    Raises:
        UsageError: Something cannot be opened, or the task has an environment.
    """
    sampler = config.parts.sampler
    trained = config if sampler.exact else replace(config, sampler=CellConfig.sampler)
    trainer = build_trainer(trained, start=start, device=device)
    if trainer.task.environment is not None:
        raise UsageError(f"--task {config.task}: has an environment; choose a task of one turn")
    policy = trainer.policy
    older = {name: weight.detach().clone() for name, weight in policy.named_parameters()}
    for update in track(range(lag), "updates of lag", lag):
        trainer.learner.update(trainer.source.next_batch(update).batch, update)
    prompts = trainer.task.held_out(config.prompts)
    return MismatchSetup(
        policy, trainer.task, open_sampler(config, trainer.task, policy), prompts, config.responses, older
    )


def _joined(parts: list[Rollout]) -> Rollout:
    """Rollouts one below the other: tokens, log-probabilities and masks."""
    named = ("responses", "logp", "mask", "entropy")
    return Rollout(**{name: torch.cat([getattr(part, name) for part in parts]) for name in named})


def _token_by_token(model: Policy, draw: Draw, path: SamplingPath) -> Rollout:
    assert path.after_token is not None
    draw = replace(draw, truncation=path.truncation)
    rollout, decoding = model.empty_rollout(draw), model.decoding(draw.prompts, draw.rows, draw.length)
    for position in range(draw.length):
        path.after_token(decoding)
        model.extend(rollout, decoding, draw, range(position, position + 1))
    return rollout

"""How long a cell of a language model takes, from a few short draws and two small updates of one thread.

Drawing responses costs the passes over their distinct prompts, and for every further token of the longest a fixed part
and one per response that has not ended. An update costs a fixed part (optimizer, norm of the gradient), and one per
position that the learner evaluates. These are measured at small sizes and added up for those of the cell.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.hf.policy import CausalPolicy
from vcpo_bench.bench.policies.hf.shared_prompts import worth_sharing
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.tasks import Task
from vcpo_bench.bench.training.build import build_learner
from vcpo_bench.bench.training.learner import Learner
from vcpo_bench.bench.trajectories import Rollout, Trajectories

_ROWS, _TOKENS = 64, 9
"""Responses of the larger of two draws that are timed, and their tokens."""
_FOLLOWED = 48
"""Tokens after which a response that has not ended is taken for one of the maximal length."""
_POSITIONS = 600
"""Positions of the larger of two updates that are timed."""
_CUT = 4 / 3
"""An update in several passes scores every response once more; a whole update costs about three such scorings."""
_AUDITED = 3
"""Times an update that the first one takes with score norms, which it checks."""


class ModelTime(NamedTuple):
    """Processor seconds of the parts of a cell, and the lengths that were found.

    Attributes:
        loading: Reading the model.
        sampling: Drawing a batch.
        updating: The rest of an update.
        first: What the first update takes beyond that.
        evaluating: An evaluation.
        prompt: Tokens of the longest prompt.
        response: Mean tokens of a response.
    """

    loading: float
    sampling: float
    updating: float
    first: float
    evaluating: float
    prompt: int
    response: float

    def words(self) -> str:
        """Lengths and seconds, as a phrase."""
        return (
            f"prompts of {self.prompt} tokens, responses of {self.response:.0f}; seconds of a core: "
            f"{self.sampling:.1f} to sample a batch, {self.updating:.1f} for the rest of an update, "
            f"{self.evaluating:.1f} for an evaluation"
        )


class _Sampling(NamedTuple):
    """Processor seconds per distinct prompt, per token of the longest response, and per token of each."""

    prompt: float
    step: float
    token: float
    longest: int
    mean: float

    def seconds(self, prompts: int, rows: int) -> float:
        """What it takes to answer so many distinct prompts with so many responses in all."""
        return prompts * self.prompt + (self.longest - 1) * self.step + rows * (self.mean - 1) * self.token


def time_model(config: CellConfig, start: Path | None, device: str) -> ModelTime:
    """Time the parts of a cell, on the device that it names or on another."""
    began = process_time()
    task = open_task(config, start)
    policy = open_policy(config, task, start, device or config.device)
    assert isinstance(policy, CausalPolicy)
    norms = "score_norm_sq" in config.parts.method.needs
    learner = build_learner(config, policy)
    loading = process_time() - began
    prompts = task.training_prompts(config.seed, 0, config.prompts)
    drawing = _time_sampling(policy, task, prompts[:8])
    length = int(policy.real(prompts).sum(1).max())
    updating = _time_updates(learner, config, prompts, length, drawing.longest, norms)
    asked = len(task.held_out(config.eval_prompts))
    return ModelTime(
        loading=loading,
        sampling=drawing.seconds(config.prompts, config.prompts * config.responses),
        updating=updating,
        first=(_AUDITED - 1) * updating if norms else 0.0,
        evaluating=drawing.seconds(asked, 2 * asked),
        prompt=length,
        response=drawing.mean,
    )


def _time_sampling(policy: CausalPolicy, task: Task, prompts: Tensor) -> _Sampling:
    """Draw few and many responses to some prompts, of one token and of several."""
    few, many, T = len(prompts), _ROWS // len(prompts) * len(prompts), task.max_response
    _draw(policy, task, prompts, few, min(2, T))  # the first draw of a process is slower
    first, _ = _draw(policy, task, prompts, few, 1)
    first_of_many, _ = _draw(policy, task, prompts, many, 1)
    seconds, drawn = _draw(policy, task, prompts, few, min(_FOLLOWED, T))
    of_many, drawn_of_many = _draw(policy, task, prompts, many, min(_TOKENS, T))
    counts = [(int(one.mask.any(0).sum()) - 1, int(one.mask.sum()) - len(one.mask)) for one in (drawn, drawn_of_many)]
    step, token = _solved(counts, [max(0.0, seconds - first), max(0.0, of_many - first_of_many)])
    lengths = drawn.mask.sum(1)
    unended = (lengths == drawn.mask.shape[1]) & (drawn.responses[:, -1] != task.eos)
    lengths = torch.where(unended, T, lengths).double()
    return _Sampling(first / few, step, token, int(lengths.max()), float(lengths.mean()))


def _draw(policy: CausalPolicy, task: Task, prompts: Tensor, rows: int, tokens: int) -> tuple[float, Rollout]:
    noise = torch.from_numpy(uniforms(0, "timing", 0, rows, tokens))
    began = process_time()
    drawn = policy.sample(Draw(prompts, noise, task.eos))
    return process_time() - began, drawn


def _solved(counts: list[tuple[int, int]], seconds: list[float]) -> tuple[float, float]:
    """Seconds per step and per token, neither below 0, from two draws of some steps and tokens."""
    (steps, tokens), (steps_of_many, tokens_of_many) = counts
    if not steps or not steps_of_many:
        return 0.0, 0.0
    ratio = steps_of_many / steps
    more = tokens_of_many - tokens * ratio
    token = max(0.0, (seconds[1] - seconds[0] * ratio) / more) if more > 0 else 0.0
    return max(0.0, (seconds[0] - tokens * token) / steps), token


def _time_updates(
    learner: Learner, config: CellConfig, prompts: Tensor, length: int, longest: int, norms: bool
) -> float:
    """Seconds of an update without its sampling, from a small and a larger one.

    `length` and `longest` are tokens of the longest prompt and response. The learner is not used any more.
    """
    G = config.responses
    tokens = max(2, min(longest, _POSITIONS // G - length))
    groups = max(1, min(len(prompts), _POSITIONS // (G * (length + tokens - 1))))
    shapes = [(1, 2), (groups, tokens)]
    _update(learner, prompts[:1], G, 2)  # the first one is slower, and checks score norms
    spent = [_update(learner, prompts[:P], G, T) for P, T in shapes]
    small, large = (_positions(P, G, length, T, norms) for P, T in shapes)
    each = max(0.0, (spent[1] - spent[0]) / (large - small)) if large > small else spent[0] / small
    whole = len(prompts) * G * (length + longest - 1)
    cut = bool(config.micro_tokens) and whole > config.micro_tokens
    positions = whole if cut else _positions(len(prompts), G, length, longest, norms)
    return max(0.0, spent[0] - small * each) + (_CUT if cut else 1) * positions * each


def _positions(prompts: int, group: int, length: int, tokens: int, norms: bool) -> int:
    """Positions that a learner evaluates in one pass; score norms need a row for each response."""
    if not norms and worth_sharing(length, group, tokens):
        return prompts * (length + group * (tokens - 1))
    return prompts * group * (length + tokens - 1)


def _update(learner: Learner, prompts: Tensor, group: int, tokens: int) -> float:
    """Processor seconds of an update on the end tokens of some responses to each prompt, half of them right."""
    shape = (len(prompts), group, tokens)
    told = torch.zeros(shape)
    reward = (torch.arange(group) % 2).double().expand(shape[:2])
    mask, version = torch.ones(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.int64)
    batch = Trajectories(0, prompts, torch.ones(shape, dtype=torch.int64), told, mask, reward, version)
    batch = replace(batch, behavior_logp=learner.logp(batch))
    began = process_time()
    learner.update(batch, 0)
    return process_time() - began

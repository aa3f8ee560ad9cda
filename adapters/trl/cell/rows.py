"""The rows of an optimizer step inside TRL as what the recorder of this project takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vcpo_bench.adapters.coefficients import Decision, StepRows
from vcpo_bench.bench.training.learner_step import NO_STEP, LearnerStep, StepMade
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import NonFiniteEvidence, Update


@dataclass(frozen=True)
class Sampled:
    """What the rows of one optimizer step do not say themselves.

    Attributes:
        place: `[B]` int64, position of each row among all responses of the run, those to one prompt together.
        tokens: `[B, T]` int64 token ids of the responses.
        reward: Mean reward of the batch that was sampled just before this step.
        seconds_sample: Seconds of sampling.
        seconds_score: Seconds of scoring and of the method.
        seconds_update: Seconds of backward passes and optimizer.
    """

    place: Tensor
    tokens: Tensor
    reward: float
    seconds_sample: float
    seconds_score: float
    seconds_update: float

    def arranged(self, values: Tensor, prompts: int) -> Tensor:
        """`[P, G, ...]` values of the rows, `[B, ...]`, in the order in which the batch was sampled."""
        rows = values[self.place.argsort()].cpu()
        return rows.view(prompts, -1, *rows.shape[1:])


def trajectories(rows: StepRows, sampled: Sampled, prompts: Tensor, count: int) -> Trajectories:
    """The batch of an update.

    Args:
        rows: Its rows, in any order.
        sampled: What they are.
        prompts: Prompts of the whole run.
        count: Prompts per update, P.
    """
    place = sampled.arranged(sampled.place, count)
    index = int(place[0, 0]) // place.numel()
    mask = sampled.arranged(rows.mask, count)
    return Trajectories(
        index=index,
        prompts=prompts[index * count : (index + 1) * count],
        responses=sampled.arranged(sampled.tokens, count),
        behavior_logp=_drawn(sampled.arranged(rows.behavior_logp, count), mask),
        mask=mask,
        reward=sampled.arranged(rows.reward.double(), count),
        version=sampled.arranged(rows.version, count).unsqueeze(-1).expand(mask.shape),
    )


def learner_step(rows: StepRows, decision: Decision, sampled: Sampled, norm: float, count: int) -> LearnerStep:
    """What the update did; arguments are those of `CellRun.record`, and `count` prompts."""
    assert rows.entropy is not None
    mask = sampled.arranged(rows.mask, count)
    norms = rows.score_norm_sq
    metrics = {name: torch.tensor(value) for name, value in decision.metrics.items()}
    coefficients = sampled.arranged(decision.coefficients, count)
    update = Update(coefficients=coefficients, step_scale=torch.tensor(decision.step_scale), metrics=metrics)
    return LearnerStep(
        logp=_drawn(sampled.arranged(rows.logp, count), mask),
        entropy=_drawn(sampled.arranged(rows.entropy, count), mask),
        score_norm_sq=None if norms is None else sampled.arranged(norms, count),
        answer=NonFiniteEvidence(decision.skipped, (0, 0)) if decision.skipped else update,
        made=NO_STEP if decision.skipped else StepMade.of(decision.step_scale, norm, {}),
        seconds_score=sampled.seconds_score,
        seconds_update=sampled.seconds_update,
    )


def _drawn(values: Tensor, mask: Tensor) -> Tensor:
    """The values of tokens that were drawn, 0 elsewhere."""
    return torch.where(mask, values.float(), 0.0)

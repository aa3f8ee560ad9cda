"""From sampled trajectories and their scores to the evidence that a method sees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.policies.scores import DenseScores, TokenScores
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.methods import Batch
from vcpo_bench.records.step_facts import EPISODE_FACTS

Gather = Callable[[Sequence[Tensor]], Tensor]
"""Puts values of each piece of a batch, `[rows, ...]`, together in the batch's order, in main memory."""


def evidence_of(
    batch: Trajectories,
    now: int,
    scores: Sequence[TokenScores],
    gather: Gather,
    needs: Collection[str],
    score_norm_sq: Tensor | None = None,
    reference_logp: Tensor | None = None,
    state: Mapping[str, Tensor] | None = None,
    moved: Mapping[str, Any] | None = None,
) -> Batch:
    """The evidence of one update.

    Args:
        batch: What was sampled: P prompts, G responses each, T tokens at most.
        now: Updates applied before this one.
        scores: TokenScores of each piece of the batch under the current policy.
        gather: How pieces come together.
        needs: Optional fields that the method asks for (`Method.needs`).
        score_norm_sq: `[P * G]` squared score norms.
        reference_logp: `[P * G, T]` log-probabilities under the reference policy.
        state: What the method returned last time.
        moved: `parameter_distance` and `update_norm`, where the method asks for them.
    """
    shape = batch.mask.shape
    return Batch(
        logp=gather([s.logp for s in scores]).view(shape),
        behavior_logp=batch.behavior_logp,
        mask=batch.mask,
        valid=torch.ones(shape[:2], dtype=torch.bool),
        reward=batch.reward,
        version=batch.version,
        now=now,
        proximal_logp=batch.proximal_logp,
        reference_logp=None if reference_logp is None else reference_logp.view(shape),
        entropy=gather([s.entropy for s in scores]).view(shape) if "entropy" in needs else None,
        sum_pi_sq=gather([s.sum_pi_sq for s in scores]).view(shape) if "sum_pi_sq" in needs else None,
        **_distributions(batch, scores, gather, needs),
        score_norm_sq=None if score_norm_sq is None else score_norm_sq.view(shape[:2]),
        void_turn=with_void_turn(batch) if "void_turn" in needs else None,
        state=state or {},
        **(moved or {}),
    )


def _distributions(
    batch: Trajectories, scores: Sequence[TokenScores], gather: Gather, needs: Collection[str]
) -> dict[str, Tensor | None]:
    """Whole distributions, `[P, G, T, V]`, of a policy that has them at hand."""
    if "vocabulary_logp" not in needs:
        return {}
    every = gather([s.distribution.detach().permute(1, 2, 0) for s in scores if isinstance(s, DenseScores)])
    return {"vocabulary_logp": every.view(*batch.mask.shape, -1), "behavior_vocabulary_logp": batch.sampler_logp}


def with_void_turn(batch: Trajectories) -> Tensor | None:
    """`[P, G]` bool: an episode had a turn that was neither a finished call nor an answer; None: no environment.

    So is a turn that was cut off: a run of tokens that the policy said, and no finished turn.
    """
    if batch.episodes is None:
        return None
    counts = dict(zip(EPISODE_FACTS, batch.episodes.unbind(-1), strict=True))
    begun = batch.mask[..., :1].long().sum(-1) + (batch.mask[..., 1:] & ~batch.mask[..., :-1]).sum(-1)
    cut_off = (counts["truncated"] > 0) & (begun > counts["turns"])
    return (counts["void_turns"] > 0) | cut_off

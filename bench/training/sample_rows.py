"""Rows of `samples.parquet`: one per consumed trajectory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from vcpo_bench.bench.cells.parquet_table import Row
from vcpo_bench.bench.training.learner_step import LearnerStep
from vcpo_bench.bench.trajectories import Trajectories
from vcpo_bench.records.step_facts import EPISODE_FACTS, StepFacts


def sample_rows(facts: StepFacts, batch: Trajectories, done: LearnerStep, full: bool) -> Iterator[Row]:
    """Rows of `records.SAMPLES` for the trajectories of one update."""
    ratio, mask = facts.masked_log_ratio, facts.mask
    length = mask.sum(-1)
    reward = batch.reward.flatten().numpy()
    unknown = [None] * len(reward)
    coefficients = done.update.coefficients.flatten(0, 1).sum(-1).tolist() if done.update else unknown
    norms = done.score_norm_sq.flatten().tolist() if done.score_norm_sq is not None else unknown
    seconds = batch.seconds.flatten(0, 1).tolist() if batch.seconds is not None else [(None, None)] * len(reward)
    episodes = [dict(zip(EPISODE_FACTS, counts, strict=True)) for counts in _counts(facts, len(reward))]
    responses, origin = batch.mask.shape[1], batch.origins().tolist()
    for i in range(len(reward)):
        index, group = origin[i // responses]
        row: dict[str, Any] = {
            "step": facts.step,
            "batch": index,
            "trajectory": group * responses + i % responses,
            "prompt": group,
            "reward": float(reward[i]),
            "length": int(length[i]),
            "log_weight": float(ratio[i].sum()),
            "kl_k3": float((np.expm1(np.minimum(ratio[i], 80.0)) - ratio[i]).sum() / max(length[i], 1)),
            "version_oldest": int(facts.version[i][mask[i]].min()),
            "version_newest": int(facts.version[i][mask[i]].max()),
            "coefficient_sum": coefficients[i],
            "seconds_in_flight": seconds[i][0],
            "seconds_in_queue": seconds[i][1],
            **episodes[i],
        }
        if full:
            row["score_norm_sq"] = norms[i]
            row["log_ratios"] = json.dumps([round(v, 6) for v in ratio[i][mask[i]].tolist()])
        yield row


def _counts(facts: StepFacts, rows: int) -> list[list[int | None]]:
    """The counts of each episode; nothing is counted where the task has no environment."""
    return [[None] * len(EPISODE_FACTS)] * rows if facts.episodes is None else facts.episodes.tolist()

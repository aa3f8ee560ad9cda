"""Synthetic tables of the scorecard: every run of a fact's blocks, told by a story."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scorecard.catalog import all_facts
from scorecard.cells import place_columns, planned
from scorecard.tables import UPDATE_COLUMNS, Tables

ROOT = Path(__file__).parents[2]
FACTS = {fact.number: fact for fact in all_facts()}
DEFAULTS = {
    "ess_ratio": 0.8,
    "kl_mu_theta_k3": 0.01,
    "grad_norm": 0.5,
    "entropy": 1.0,
    "step_scale": 1.0,
    "share_clipped": 0.0,
    "share_masked": 0.0,
    "lag_max": 1.0,
    "length_mean": 12.0,
}


@dataclass
class Story:
    """How one run went: a rise from 0.3 to `top`, perhaps a fall to 0 at an update and a way back.

    `updates` overrides columns of the updates, by a number or by a function of the steps.
    """

    top: float = 0.9
    tau: float = 50.0
    fall: float | None = None
    back: float | None = None
    easy: float = 0.0
    hard: float = 0.0
    entropy: Callable[[np.ndarray], np.ndarray] | float = 1.0
    updates: dict[str, Any] = field(default_factory=dict)


Tell = Callable[[Any], Story]


def tables(blocks: Any, tell: Tell, docs: Path = ROOT / "docs") -> Tables:
    """The tables of a world in which every run goes as `tell` says of its configuration."""
    configs = [cell.config for cell in planned(blocks).values()]
    runs = place_columns(configs).assign(status="completed").rename_axis("run").reset_index()
    evals, updates = [], []
    for run, config in enumerate(configs):
        story = tell(config)
        evals.append(_evals(story, config.steps).assign(run=run))
        updates.append(_updates(story, config.steps).assign(run=run))
    return Tables(runs, pd.concat(evals), pd.concat(updates), docs)


def wobble(seed: int, size: float) -> float:
    """A number within +- size / 2 that differs from seed to seed and has mean 0 over eight."""
    return size * ((seed * 3) % 8 - 3.5) / 7


def even_seed(config: Any) -> bool:
    """Whether the seed of a configuration is even."""
    return bool(config.seed % 2 == 0)


def _reward(story: Story, steps: np.ndarray) -> np.ndarray:
    reward = 0.3 + (story.top - 0.3) * (1 - np.exp(-steps / story.tau))
    down = np.zeros(len(steps), bool) if story.fall is None else steps >= story.fall
    return np.where(down & (steps < (story.back or np.inf)), 0.0, reward)


def _evals(story: Story, updates: int) -> pd.DataFrame:
    steps = np.arange(0, updates + 1, 10)
    reward = _reward(story, steps)
    entropy = story.entropy(steps) if callable(story.entropy) else np.full(len(steps), story.entropy)
    halves = {"sampled_reward_easy": reward + story.easy, "sampled_reward_hard": reward + story.hard}
    return pd.DataFrame({"step": steps, "sampled_reward": reward, **halves, "entropy": entropy})


def _updates(story: Story, updates: int) -> pd.DataFrame:
    steps = np.arange(updates)
    columns: dict[str, Any] = {"sampled_reward": _reward(story, steps)} | DEFAULTS | story.updates
    made = {name: columns[name](steps) if callable(columns[name]) else columns[name] for name in UPDATE_COLUMNS}
    return pd.DataFrame({"step": steps, **made})

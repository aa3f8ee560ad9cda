"""Synthetic studies with known truth: what ESS does toward a collapse is chosen, everything else is noise."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vcpo_bench import records
from vcpo_bench.analysis.results import Results

STEPS, EVERY, LAGS, METHODS = 300, 10, (1, 16, 64), ("calm", "wild")
CHANCE = {1: 0.2, 16: 0.4, 64: 0.7}
"""Share of runs that collapse at each lag."""

Shape = Callable[[np.ndarray, float, int, np.random.Generator], np.ndarray]
"""(updates applied, onset or infinity, lag, generator) -> how far ESS is below its usual level, in nats."""


def leads(rise: float) -> Shape:
    """Rises `rise` updates before the evaluation that finds the run down, and stays up."""
    return lambda t, onset, lag, rng: 2.0 * (t >= onset - rise)


def of_the_lag(t: np.ndarray, onset: float, lag: int, rng: np.random.Generator) -> np.ndarray:
    return np.full(t.shape, 0.5 * np.log2(1 + lag))


def clock(t: np.ndarray, onset: float, lag: int, rng: np.random.Generator) -> np.ndarray:
    return t / 50


def nothing(t: np.ndarray, onset: float, lag: int, rng: np.random.Generator) -> np.ndarray:
    return np.zeros(t.shape)


def marker(t: np.ndarray, onset: float, lag: int, rng: np.random.Generator) -> np.ndarray:
    """From the first update on: says which run, never when."""
    return np.full(t.shape, 2.0 * np.isfinite(onset))


SHAPES: dict[str, Shape] = {
    "leads": leads(27),
    "clock": clock,
    "lag": of_the_lag,
    "nothing": nothing,
    "reacts": leads(-1),
    "marker": marker,
}


def evaluations(onset: float, rng: np.random.Generator) -> np.ndarray:
    """Held-out reward before the first update and every 10 updates: 0.6 until the onset, 0.05 from it on."""
    at = np.arange(0, STEPS + 1, EVERY)
    return np.where(at >= onset, 0.05, 0.6) + rng.normal(0, 0.01, at.size)


def build_study(
    shapes: Mapping[str, Shape], seeds: int = 8, seed: int = 0, rates: Sequence[float] = (1e-4, 3e-4)
) -> Results:
    """Results of 2 methods x 3 lags x `rates` x `seeds`, held in memory; columns in `shapes` behave as they say.

    `ess_ratio` is `exp(-value)`, every other column is the value itself; all carry noise of spread 0.5. Which run
    collapses depends on the lag alone, and when is uniform between updates 100 and 280.
    """
    rng = np.random.default_rng(seed)
    cells, steps, evals = [], [], []
    t = np.arange(1, STEPS + 1, dtype=float)
    for lag in LAGS:
        for method in METHODS:
            for lr in rates:
                for number in range(seeds):
                    key = f"{method}-{lag}-{lr:g}-{number}"
                    collapses = rng.random() < CHANCE[lag]
                    onset = float(rng.integers(10, 27) * EVERY) if collapses else np.inf
                    config = {"task": "chain", "method": method, "regime": "fifo", "staleness": lag, "lr": lr}
                    facts = {"status": "completed", "reason": "", "error": None, "steps_done": STEPS, "seconds": 1.0}
                    facts |= {"rules_version": records.RULES_VERSION, "method_version": 1, "control": False}
                    cells.append({"key": key} | config | {"seed": number, "steps": STEPS} | facts)
                    table = {"key": key, "step": np.arange(STEPS), "lr": lr, "step_scale": 1.0}
                    table |= {"sampled_reward": rng.normal(0.5, 0.05, STEPS), "lag_max": np.minimum(t - 1, lag)}
                    for column, shape in shapes.items():
                        value = shape(t, onset, lag, rng) + rng.normal(0, 0.5, STEPS)
                        table[column] = np.exp(-value) if column == "ess_ratio" else value
                    steps.append(pd.DataFrame(table))
                    reward = evaluations(onset, rng)
                    at = np.arange(0, STEPS + 1, EVERY)
                    evals.append(pd.DataFrame({"key": key, "step": at, "sampled_reward": reward}))
    frame = pd.DataFrame(cells).assign(partial=False, path="", provenance=[{} for _ in cells])
    results = Results([Path("synthetic")], frame)
    results.__dict__["steps"] = pd.concat(steps, ignore_index=True)
    results.__dict__["evals"] = pd.concat(evals, ignore_index=True).assign(greedy_reward=np.nan)
    return results


@pytest.fixture(scope="session")
def make_study() -> Callable[..., Results]:
    """`make_study({"ess_ratio": shape, ...}, seeds=8, seed=0) -> Results`; see `build_study`."""
    return build_study


@pytest.fixture(scope="session")
def truths() -> dict[str, Shape]:
    """What ESS may do: `leads` (fully seen 20 updates before), `clock`, `lag`, `nothing`, `reacts`,
    `marker`."""
    return SHAPES

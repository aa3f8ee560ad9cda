"""Fixtures that more than one room needs: a synthetic results folder in the exact schema of `records`."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from plugin_state import forget_plugins

from vcpo_bench import records
from vcpo_bench.records.steps import STEPS

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the workers of a grid: bits depend on it, and cores are shared

SHAPES = ("healthy", "collapsed", "rebound", "dip", "stall", "nan", "error")
EVAL_EVERY = 10
TRAJECTORIES = 128
LENGTH = 12
_ARROW = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}
_LEVELS = ("basic", "diagnostics", "full")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """One worker runs a whole file, so that a fixture of a module is built once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


def reward_curve(shape: str, steps: int) -> np.ndarray:
    """Noise-free sampled reward of the policy before each update, and after the last: [steps + 1]."""
    t = np.arange(steps + 1) / steps
    healthy = 0.33 + 0.4 * (1 - np.exp(-4 * t))
    if shape == "collapsed":
        return healthy * np.where(t < 0.35, 1.0, np.exp(-(t - 0.35) * 40))
    if shape == "rebound":  # to 1% of the best, then back to 65%: as one published run does
        fall = np.where(t < 0.4, 1.0, np.maximum(np.exp(-(t - 0.4) * 40), 0.01))
        return healthy * np.where(t < 0.75, fall, np.minimum(0.65, 0.01 + (t - 0.75) * 6))
    if shape == "dip":
        return healthy * np.where(abs(t - 0.5) < 0.015, 0.3, 1.0)
    if shape == "stall":
        return np.full(steps + 1, 0.33)
    return healthy


def log_weight_spread(shape: str, lag: int, steps: int) -> np.ndarray:
    """Standard deviation of the sequence log-weights per update: it grows with lag, and before and after a collapse."""
    t = np.arange(steps) / steps
    spread = np.full(steps, 0.15 + 0.35 * np.log2(1 + lag) / 4)
    if shape in ("collapsed", "rebound"):
        spread = spread * (1 + 4 / (1 + np.exp(-(t - 0.3) * 30)))
    return spread


def step_columns(shape: str, lag: int, lr: float, steps: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Every column of `steps.parquet`, of length `steps`."""
    reward = np.clip(reward_curve(shape, steps)[:-1] + rng.normal(0, 0.03, steps), 0, 1)
    spread = log_weight_spread(shape, lag, steps)
    realized = np.minimum(np.arange(steps), lag)
    norm = 0.5 * np.exp(rng.normal(0, 0.3, steps)) * (1 + spread)
    ess = np.clip(np.exp(-(spread**2)) * np.exp(rng.normal(0, 0.05, steps)), 1 / TRAJECTORIES, 1)
    columns = {
        "step": np.arange(steps),
        "sampled_reward": reward,
        "batch_reward": np.roll(reward, lag),
        "ess_ratio": ess,
        "ess_ratio_used": np.sqrt(ess),
        "log_weight_max": 2.6 * spread,
        "log_weight_var": spread**2,
        "kl_mu_theta_k1": spread**2 / (2 * LENGTH),
        "kl_mu_theta_k3": spread**2 / (2 * LENGTH) * np.exp(rng.normal(0, 0.02, steps)),
        "entropy": 1.2 * np.exp(-np.arange(steps) / steps) + 0.01 * rng.random(steps),
        "grad_norm": norm,
        "grad_norm_clipped": np.minimum(norm, 1.0),
        "step_scale": np.sqrt(ess),
        "lr": lr * np.sqrt(ess),
        "share_clipped": np.clip(spread / 10, 0, 1),
        "share_masked": np.zeros(steps),
        "lag_min": realized,
        "lag_mean": realized.astype(float),
        "lag_max": realized,
        "version_oldest": np.arange(steps) - realized,
        "version_newest": np.arange(steps) - realized,
        "version_mean": (np.arange(steps) - realized).astype(float),
        "filling": np.arange(steps) < lag,
        "length_mean": np.full(steps, float(LENGTH)),
        "queued": np.zeros(steps, dtype=int),
        "in_flight": np.zeros(steps, dtype=int),
        "dropped": np.zeros(steps, dtype=int),
        "sampler_busy": np.full(steps, np.nan),
        "nonfinite": np.array([""] * steps, dtype=object),
        "token_ess_ratio": ess ** (1 / LENGTH),
        "grad_cosine": np.clip(rng.normal(0.2, 0.2, steps), -1, 1),
        "head_grad_norm": norm * 0.3,
    }
    for quantile, normal in (("05", -1.645), ("25", -0.674), ("50", 0.0), ("75", 0.674), ("95", 1.645)):
        columns[f"log_weight_q{quantile}"] = normal * spread - spread**2 / 2
    for phase, seconds in (("sample", 0.03), ("score", 0.01), ("update", 0.04), ("record", 0.001)):
        columns[f"seconds_{phase}"] = seconds * (1 + 0.1 * rng.random(steps))
    for phase in ("wait", "in_flight", "in_queue"):
        columns[f"seconds_{phase}"] = np.full(steps, np.nan)
    return columns


def eval_columns(shape: str, steps: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Every column of `evals.parquet`: before the first update, then every 10 updates."""
    at = np.arange(0, steps + 1, EVAL_EVERY)
    sampled = np.clip(reward_curve(shape, steps)[at] + rng.normal(0, 0.02, at.size), 0, 1)
    greedy = np.clip(sampled + 0.05, 0, 1)
    return {
        "step": at,
        "greedy_reward": greedy,
        "sampled_reward": sampled,
        "entropy": 1.2 - at / steps / 2,
        "seconds": 0.05 + 0 * sampled,
    }


def sample_columns(shape: str, lag: int, steps: int, every: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Every column of `samples.parquet`, with all trajectories of every `every`-th update."""
    at = np.repeat(np.arange(0, steps, every), TRAJECTORIES)
    spread = log_weight_spread(shape, lag, steps)[at]
    log_weight = rng.normal(-(spread**2) / 2, spread)
    version = np.maximum(at - lag, 0)
    trajectory = np.tile(np.arange(TRAJECTORIES), at.size // TRAJECTORIES)
    reward = (rng.random(at.size) < reward_curve(shape, steps)[at]).astype(float)
    return {
        "step": at,
        "batch": at,
        "trajectory": trajectory,
        "prompt": trajectory // 8,
        "reward": reward,
        "length": np.full(at.size, LENGTH),
        "log_weight": log_weight,
        "kl_k3": spread**2 / (2 * LENGTH),
        "version_oldest": version,
        "version_newest": version,
        "coefficient_sum": np.exp(np.minimum(log_weight, np.log(8))) * (reward - reward.mean()),
        "seconds_in_flight": np.full(at.size, np.nan),
        "seconds_in_queue": np.full(at.size, np.nan),
        "score_norm_sq": np.exp(rng.normal(2, 0.5, at.size)),
        "log_ratios": np.array([json.dumps([round(x / LENGTH, 6)] * LENGTH) for x in log_weight], dtype=object),
    }


def episode_columns(shape: str, steps: int) -> dict[str, np.ndarray]:
    """Every column of `episodes.parquet`: two prompts per evaluation, right where the curve is above a third."""
    at = np.repeat(np.arange(0, steps + 1, EVAL_EVERY), 2)
    right = reward_curve(shape, steps)[at] >= 0.33
    prompt = np.tile([0, 1], at.size // 2)
    text = [f"prompt {p} <b> at {t}: {'right' if r else 'wrong'}" for p, t, r in zip(prompt, at, right, strict=True)]
    return {"step": at, "prompt": prompt, "text": np.array(text, dtype=object), "reward": right.astype(float)}


def write_table(path: Path, columns: Mapping[str, np.ndarray], schema: Sequence[records.Column], level: str) -> None:
    kept = [c for c in schema if _LEVELS.index(c.level) <= _LEVELS.index(level)]
    fields = pa.schema([(c.name, _ARROW[c.kind]) for c in kept])
    missing = [None] * len(columns["step"])  # of a column added to the schema since
    pq.write_table(pa.table({c.name: columns.get(c.name, missing) for c in kept}, schema=fields), path)


def write_cell(
    root: Path, config: Mapping[str, object], shape: str, partial: bool, rules_version: str, sample_every: int
) -> str:
    """Write one cell folder; returns its key."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    key = f"{config['task']}-{config['method']}-{config['regime']}{config['staleness']}-s{config['seed']}-{digest[:10]}"
    level, planned, lag = str(config["record"]), int(str(config["steps"])), int(str(config["staleness"]))
    ended_early = shape in ("nan", "error") or partial
    steps = max(planned // 2, 1) if ended_early else planned
    rng = np.random.default_rng(int(digest[:8], 16))
    rows = step_columns(shape, lag, float(str(config["lr"])), steps, rng)
    if shape == "nan":
        rows["nonfinite"][-3:] = "logp"
    cell = root / records.CELLS / (key + records.PARTIAL_SUFFIX if partial else key)
    tables = cell / "checkpoint-000050" if partial else cell
    tables.mkdir(parents=True)
    write_table(tables / records.STEPS_FILE, rows, STEPS, level)
    write_table(tables / records.EVALS_FILE, eval_columns(shape, steps, rng), records.EVALS, level)
    lags = {"step": np.arange(steps), "lag": rows["lag_max"], "trajectories": np.full(steps, TRAJECTORIES)}
    lags["tokens"] = lags["trajectories"] * LENGTH
    write_table(tables / records.LAGS_FILE, lags, records.LAGS, level)
    if level != "basic":
        write_table(
            tables / records.SAMPLES_FILE, sample_columns(shape, lag, steps, sample_every, rng), records.SAMPLES, level
        )
        write_table(tables / records.EPISODES_FILE, episode_columns(shape, steps), records.EPISODES, level)
    facts = {
        "key": key,
        "config": dict(config),
        "status": shape if shape in ("nan", "error") else "completed",
        "reason": {"nan": "3 updates in a row had non-finite logp", "error": "ValueError: broken on purpose"}.get(
            shape, ""
        ),
        "error": "ValueError: broken on purpose" if shape == "error" else None,
        "steps_done": steps,
        "rules_version": rules_version,
        "method_version": 1,
        "provenance": {"commit": "0" * 40, "python": "3.11.7", "hardware": "synthetic"},
        "seconds": 0.08 * steps,
    }
    if partial:
        del facts["status"]
    (tables / records.CELL_FILE).write_text(json.dumps(facts, indent=1))
    return key


def build_results(
    folder: Path,
    methods: Sequence[str] = ("vcpo", "tis"),
    lags: Sequence[int] = (1, 16),
    seeds: Sequence[int] = (0, 1, 2),
    steps: int = 100,
    *,
    tasks: Sequence[str] = ("chain",),
    lrs: Sequence[float] = (3e-4,),
    shapes: Mapping[str, str] | Callable[[str, int, int], str] | None = None,
    controls: bool = True,
    record: str = "basic",
    partial: Sequence[str] = (),
    rules_version: str = records.RULES_VERSION,
    sample_every: int = 10,
) -> Path:
    """Write a plausible results folder and return it.

    `shapes` says which curve (one of `SHAPES`) a cell shows: a mapping from method to shape, or a function of
    (method, lag, seed); the default collapses `tis` and `reinforce` at lags above 4. Methods named in `partial`
    are still running. With `controls` a `reinforce` cell per lag and seed and a synchronous one per seed are added.
    """
    grid: dict[str, dict[str, bool]] = {}
    asked = [(method, lag, False) for method in methods for lag in lags]
    asked += [("reinforce", lag, True) for lag in (0, *lags)] if controls else []

    def shape_of(method: str, lag: int, seed: int) -> str:
        if callable(shapes):
            return shapes(method, lag, seed)
        default = "collapsed" if method in ("tis", "reinforce") and lag > 4 else "healthy"
        return (shapes or {}).get(method, default)

    for task in tasks:
        for lr in lrs:
            for seed in seeds:
                for method, lag, control in dict.fromkeys(asked):
                    config = {
                        "task": task,
                        "method": method,
                        "regime": "fifo",
                        "staleness": lag,
                        "seed": seed,
                        "lr": lr,
                    }
                    config |= {"steps": steps, "prompts": 16, "responses": 8, "record": record}
                    key = write_cell(
                        folder, config, shape_of(method, lag, seed), method in partial, rules_version, sample_every
                    )
                    grid[key] = {"control": control}
    (folder / records.GRID_FILE).write_text(json.dumps({"cells": grid}, indent=1))
    return folder


@pytest.fixture(autouse=True)
def _no_plugin_outlives_its_test() -> Iterator[None]:
    yield
    forget_plugins()


@pytest.fixture(scope="session")
def make_results() -> Callable[..., Path]:
    """`make_results(folder, methods=..., lags=..., seeds=..., steps=...) -> folder`; see `build_results`."""
    return build_results

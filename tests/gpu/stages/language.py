"""Stage 4: Llamas warmed up here, trained by four methods at three lags, and what the sampler does at lag 0."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit import Setup, fastest
from verbs import call, run_grid

METHODS = ("vcpo", "clip", "vespo", "tis")


def train(size: str, task: str) -> Callable[[Setup], dict[str, Any]]:
    """Warm a random Llama up and train it: vcpo, clip, vespo, tis at lags 0, 8 and 32, two seeds, bfloat16."""

    def run(setup: Setup) -> dict[str, Any]:
        folder = setup.work / f"{size}-{task.partition('(')[0]}"
        model, results = folder / "model", folder / "results"
        new, asked = setup.pick((f"llama({size})", task), ("llama(10k)", "arithmetic(terms=2,largest=1)"))
        if not (model / "vcpo_bench_warmup.json").exists():
            target = setup.pick("0.3", "0.001")
            call(
                setup,
                "warmup",
                "--new",
                new,
                "--task",
                asked,
                "--target",
                target,
                "--out",
                model,
                "--device",
                setup.device,
            )
        run_grid(setup, results, "--model", model, "--task", asked, *_grid(setup))
        return _summary(results)

    return run


def _grid(setup: Setup) -> list[str]:
    methods, lags, seeds = setup.pick((METHODS, "0,8,32", "2"), (("tis",), "0,2", "1"))
    steps, prompts, responses = setup.pick(("60", "32", "8"), ("3", "2", "2"))
    shape = ("--steps", steps, "--prompts", prompts, "--responses", responses)
    precision = setup.pick(("--dtype", "bfloat16", "--lr", "1e-5"), ("--lr", "1e-4"))
    grid = ["--methods", ",".join(methods), "--staleness", lags, "--seeds", seeds, *shape]
    return [*grid, *precision, "--device", setup.device, "--jobs", setup.pick("8", "1")]


def _summary(results: Path) -> dict[str, Any]:
    """Final reward, ESS and seconds per update of every cell, and the engine mismatch: ESS at lag 0."""
    from vcpo_bench.analysis.results import load

    found = load(results)
    rows = []
    for key, steps in found.steps.groupby("key", sort=False):
        cell = found.cells.set_index("key").loc[key]
        evals = found.evals[found.evals["key"] == key]
        seconds = steps[[name for name in steps if name.startswith("seconds_")]].sum(axis=1)
        rows.append(
            {
                "method": cell["method"],
                "staleness": int(cell["staleness"]),
                "lag_realized": float(steps["lag_mean"].iloc[-1]),
                "seed": int(cell["seed"]),
                "status": cell["status"],
                "start_reward": float(evals["sampled_reward"].iloc[0]),
                "final_reward": float(evals["sampled_reward"].iloc[-1]),
                "ess_ratio_median": float(steps["ess_ratio"].median()),
                "seconds_per_update": float(seconds.median()),
            }
        )
    at_zero = [row["ess_ratio_median"] for row in rows if row["staleness"] == 0]
    return {"cells": rows, "ess_at_lag_0": min(at_zero, default=float("nan"))}


def sampling(setup: Setup) -> dict[str, Any]:
    """Tokens per second of the slot sampler and of Hugging Face `generate`, and of the built-in policy."""
    import torch

    from vcpo_bench.bench.policies.hf.create import new_model
    from vcpo_bench.bench.policies.hf.policy import CausalPolicy
    from vcpo_bench.bench.samplers.catalog import SAMPLERS

    size, rows, length = setup.pick(("llama(30M)", 256, 256), ("llama(10k)", 4, 8))
    network, _ = new_model(size)
    prompts = torch.randint(3, 90, (rows, 32), generator=torch.Generator().manual_seed(0))
    draws = torch.rand(rows, length, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = {}
    for name in ("torch", "generate"):
        policy = CausalPolicy(network.to(setup.device), 0, torch.bfloat16, SAMPLERS.parse(name).sampling())
        seconds = fastest(setup.device, lambda policy=policy: policy.sample(prompts, draws), setup.pick(2, 1))
        found[name] = {"tokens_per_second": round(rows * length / seconds), "rows": rows, "length": length}
    return found

"""Stage 6: Llamas warmed up here, trained by four methods at three lags, and what the sampler takes of an update."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from kit import Failed, Result, Setup, broken, fastest, release, said
from verbs import call, ended_cells, run_grid

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.cells.opening import open_policy, open_task
from vcpo_bench.bench.policies.base import Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.training.build import build_trainer

METHODS = ("vcpo", "clip", "vespo", "tis")
SEEDS = 2
EASY = "arithmetic(terms=2,largest=1)"
MARK = "config.json"
"""The file that the warm-up writes last."""


def train(setup: Setup, size: str, task: str) -> Result:
    """Warm a random Llama up and train it: vcpo, clip, vespo, tis at lags 0, 8 and 32, two seeds, bfloat16."""
    folder = setup.work / f"{task.partition('(')[0]}-{size}"
    model, results = folder / "model", folder / "results"
    new, asked, target = setup.pick((f"llama({size})", task, 0.3), ("llama(10k)", EASY, 0.001))
    if not (model / MARK).exists():
        where = ("--target", target, "--out", model, "--device", setup.device)
        call(setup, "lab", "warmup", "--new", new, "--task", asked, *where)
    found: Result = {}
    for seed in range(setup.pick(SEEDS, 1)):  # seed after seed, so that a cut grid is balanced
        flags = ("--model", model, "--task", asked, "--seeds", f"{seed}-{seed}", *_grid(setup))
        found = run_grid(setup, results, cell_table, *flags)
        setup.keep(found)
    return found


def _grid(setup: Setup) -> list[str]:
    methods, lags = setup.pick((METHODS, "0,8,32"), (("tis",), "0,2"))
    steps, prompts, responses = setup.pick(("60", "32", "8"), ("3", "2", "2"))
    shape = ("--steps", steps, "--prompts", prompts, "--responses", responses)
    precision = setup.pick(("--dtype", "bfloat16", "--lr", "1e-5"), ("--lr", "1e-4"))
    grid = ["--methods", ",".join(methods), "--staleness", lags, *shape]
    return [*grid, *precision, "--device", setup.device, "--jobs", setup.pick("8", "1")]


def cell_table(results: Path) -> Result:
    """Final reward and ESS of every cell that has ended, and the engine mismatch: ESS at lag 0.

    Seconds are those of cells that share the device with others.
    """
    from vcpo_bench.analysis.results import load

    if not ended_cells(results):
        return {"ended": 0}
    found = load(results)
    rows = []
    for key, steps in found.steps.groupby("key", sort=False):
        cell = found.cells.set_index("key").loc[key]
        evals = found.evals[found.evals["key"] == key]
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
                "seconds_shared": float(cell["seconds"]) / len(steps),
            }
        )
    at_zero = [row["ess_ratio_median"] for row in rows if row["staleness"] == 0]
    return {"ended": len(rows), "cells": rows, "ess_at_lag_0": min(at_zero, default=float("nan"))}


def sampling(setup: Setup) -> Result:
    """Of the built-in policy and of a Llama by both samplers: tokens per second, and share of the update of one cell.

    The cell has the device to itself.
    """
    model = setup.work / "sampling" / "model"
    if not (model / MARK).exists():
        _save(setup.pick("llama(30M)", "llama(10k)"), model)
    found: Result = {"samplers": []}
    failed = []
    for name, config, start in _cells(setup, model):
        try:
            found["samplers"].append({"sampler": name} | _speed(setup, config, start) | _share(setup, config, start))
        except Exception as problem:  # whatever a driver raises is a result
            failed.append(f"{name}: {said(problem)}")
            if broken(setup.device):
                break
        release(setup.device)
        setup.keep(found)
    if failed:
        raise Failed("; ".join(failed), found)
    return found


def _cells(setup: Setup, model: Path) -> list[tuple[str, CellConfig, Path | None]]:
    """Name, cell and start of what is sampled from."""
    steps = setup.pick(8, 2)
    shared: dict[str, Any] = {"method": "tis", "staleness": 0, "seed": 0, "steps": steps, "eval_every": steps}
    text = {"task": text_task(setup.pick("arithmetic", EASY)).canonical, "model": model_identity(str(model))}
    text |= {"dtype": setup.pick("bfloat16", "float32")}
    large, small = {"prompts": 32, "responses": 8}, {"prompts": 2, "responses": 2}
    size = setup.pick(large, small)
    built_in = CellConfig(task="chain", **shared, **size)
    own = [(name, CellConfig(sampler=name, **shared, **size, **text), model) for name in ("torch", "generate")]
    return [("built-in", built_in, None), *own]


def _speed(setup: Setup, config: CellConfig, start: Path | None) -> Result:
    """Tokens per second of whole responses: those that end early would say more of the policy than of the sampler."""
    task = open_task(config, start)
    policy: Policy = open_policy(config, task, start, setup.device)
    rows, length = config.prompts * config.responses, setup.pick(min(task.max_response, 256), 4)
    prompts = task.training_prompts(0, 0, config.prompts)
    draws = torch.rand(rows, length, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    seconds = fastest(setup.device, lambda: policy.sample(Draw(prompts, draws)), setup.pick(3, 1))
    return {"tokens_per_second": round(rows * length / seconds), "rows": rows, "length": length}


def _share(setup: Setup, config: CellConfig, start: Path | None) -> Result:
    """Median over the updates but the first: share of sampling, and seconds of the whole."""
    trainer = build_trainer(config, start=start, device=setup.device)
    while not trainer.status:
        trainer.advance()
    trainer.close()
    columns = trainer.recorder.tables["steps.parquet"].columns
    parts = torch.tensor([columns[f"seconds_{part}"][1:] for part in ("sample", "score", "update", "record")])
    share = (parts[0] / parts.sum(0)).median()
    return {"share_of_update": float(share), "seconds_per_update": float(parts.sum(0).median())}


def _save(size: str, folder: Path) -> None:
    from vcpo_bench.bench.policies.hf.create import new_model

    network, tokenizer = new_model(size)
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)

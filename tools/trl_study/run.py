"""The same method in our harness and in TRL, side by side: runs what is missing and writes the tables of the study.

    pip install '.[trl]'
    python tools/trl_study/run.py --out docs/studies/trl --model models/start

Registered in docs/studies/trl/registration.md. Runs that are in the curves already are not run again. Several processes
can share the work: one with `--part exact`, one each with `--part ours-0`, `--part trl-0`, `--part ours-1` ...
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path

import in_trl
import ours
import pandas as pd
import torch
from settings import EXACT_SEED, EXACT_UPDATES, LAGS, METHODS, SEEDS, Arm, Run, start_model
from tables import agreement_table, run_table

SIDES = {"ours": ours.train, "trl": in_trl.train}
PARTS = {f"{side}-{seed}": (side, seed) for seed in SEEDS for side in SIDES}
EXACT = {"exact": False, "exact-tokens": True}
"""Parts of question 1, and whether TRL's rewards are computed from the tokens instead of from its text."""
RUNS, AGREEMENT = "runs.csv", "agreement.csv"


def main() -> None:
    """Run what is missing, then write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--model", type=Path, required=True, help="folder of the start policy; made if missing")
    parser.add_argument("--part", choices=[*EXACT, *PARTS], help="only this one, and no tables")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    start = start_model(options.model)
    for name, score_tokens in EXACT.items():
        if options.part in (None, name):
            compare_weights(start, options.out / f"{name}.csv.gz", score_tokens)
    for name, (side, seed) in PARTS.items():
        if options.part in (None, name):
            run_arms(side, seed, start, curves_of(options.out, name))
    if not options.part:
        write_tables(options.out)


def curves_of(folder: Path, part: str) -> Path:
    """Where the curves of one side and seed are."""
    return folder / f"curves-{part}.csv.gz"


def write_tables(folder: Path) -> None:
    """One row per run, and one per method and lag, of the seeds that both sides have finished."""
    tables = [pd.read_csv(path) for name in PARTS if (path := curves_of(folder, name)).exists()]
    runs = run_table(pd.concat(tables))
    complete = runs.groupby("seed").size() == len(METHODS) * len(LAGS) * len(SIDES)
    runs = runs[runs["seed"].map(complete)]
    runs.to_csv(folder / RUNS, index=False, float_format="%.6g")
    agreement_table(runs).to_csv(folder / AGREEMENT, index=False, float_format="%.6g")


def arms(seed: int, updates: int) -> Iterator[Arm]:
    """Every method at every lag."""
    for method, lag in itertools.product(METHODS, LAGS):
        yield Arm(method, lag, seed, updates)


def compare_weights(start: Path, path: Path, score_tokens: bool) -> None:
    """Question 1: TRL trains on the batches of our harness; one row per arm and update."""
    for arm in arms(EXACT_SEED, EXACT_UPDATES):
        if _done(path, method=arm.method, lag=arm.lag):
            continue
        own = ours.train(arm, start, keep_weights=True)
        other = in_trl.train(arm, start, own.batches, score_tokens)
        before = in_trl.start_weights(start)
        rows = [
            {
                "method": arm.method,
                "lag": arm.lag,
                "update": update,
                "relative": float((b - a).norm() / (a - before).norm()),
                "largest": float((b - a).abs().max()),
                "step_scale": float(own.updates[update - 1]["step_scale"]),
                "ess_difference": other.updates[update - 1]["ess_ratio"] - own.updates[update - 1]["ess_ratio"],
            }
            for update, (a, b) in enumerate(zip(own.weights, other.weights, strict=True), start=1)
        ]
        _append(path, rows)


def run_arms(side: str, seed: int, start: Path, path: Path) -> None:
    """Questions 2 and 3: a side samples for itself."""
    for arm in arms(seed, Arm.updates):
        if not _done(path, method=arm.method, lag=arm.lag):
            run = SIDES[side](arm, start)
            _append(path, list(_curve(side, arm, run)))
            print(f"seed {seed} {arm.method} lag {arm.lag} {side}: {run.evals[-1][1]:.3f}", flush=True)


def _curve(side: str, arm: Arm, run: Run) -> Iterator[dict[str, object]]:
    """One row per update, and one for the start."""
    success = dict(run.evals)
    named = {"side": side, "method": arm.method, "lag": arm.lag, "seed": arm.seed}
    yield {**named, "update": 0, "success": success[0]}
    for row in run.updates:
        yield {**named, **row, "update": int(row["update"]), "success": success.get(int(row["update"]))}
    yield {**named, "update": -1, "seconds": run.seconds}


def _done(path: Path, **values: object) -> bool:
    if not path.exists():
        return False
    table = pd.read_csv(path)
    return bool((table[list(values)] == pd.Series(values)).all(axis=1).any())


def _append(path: Path, rows: list[dict[str, object]]) -> None:
    """Add rows to a table, which is replaced whole, so that a kill leaves the old one."""
    old = [pd.read_csv(path)] if path.exists() else []
    unfinished = path.with_name(f"new-{path.name}")
    pd.concat([*old, pd.DataFrame(rows)]).to_csv(unfinished, index=False, float_format="%.6g")
    unfinished.replace(path)


if __name__ == "__main__":
    main()

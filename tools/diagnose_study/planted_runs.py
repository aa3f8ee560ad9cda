"""The planted runs of the study of `diagnose`, as logs that every tool can be given.

    python tools/diagnose_study/planted_runs.py OUT

Each run is written as verl's file log, as TRL's `trainer_state.json`, and as a table of plain columns for tools that
only take what a training loop hands them.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "helpers"))

from foreign_runs import PLANTED, STEPS, Columns, planted, rows_of

CAUSES = {
    "healthy": "healthy",
    "lag spike": "lag and weights",
    "engine noise": "engine gap",
    "length explosion": "truncation and length",
    "entropy loss": "entropy",
    "zero-variance data": "zero-variance groups",
    "NaN": "gradient or non-finite",
    "resume with a jump": "resume jump",
}
"""What was planted, and what `diagnose` calls it."""
SEEDS = {"healthy": 24}
OTHER_SEEDS = 6
OVERLAP = 8


def run_of(planted_as: str, seed: int) -> tuple[Columns, list[int]]:
    """The columns, and which of their rows are logged in which order."""
    order = list(range(STEPS))
    if planted_as != "resume with a jump":
        return planted(CAUSES[planted_as], seed=seed), order
    run = planted("healthy", seed=seed)
    after = np.arange(STEPS) >= PLANTED
    for column, level in (("reward", 0.02), ("eval_reward", 0.02), ("grad_norm", 6.0)):
        noise = np.exp(np.random.default_rng(seed).normal(0, 0.1, STEPS))
        run[column] = np.where(after & np.isfinite(run[column]), level * noise, run[column])
    return run, order[: PLANTED + OVERLAP] + order[PLANTED:]


def write(name: str, run: Columns, order: list[int], out: Path) -> None:
    """One run in three forms."""
    verl, trl = rows_of(run, "verl"), rows_of(run, "trl")
    run = run | {"loss": np.where(np.isfinite(run["grad_norm"]), 0.01, np.nan)}
    losses = [float(value) for value in run["loss"]]
    lines = [json.dumps({"step": step, "data": {**verl[step], "actor/pg_loss": losses[step]}}) + "\n" for step in order]
    (out / f"{name}.verl.jsonl").write_text("".join(lines), encoding="utf-8")
    history = [{"step": step, "epoch": step / STEPS, "loss": losses[step], **trl[step]} for step in order]
    (out / f"{name}.trl").mkdir(exist_ok=True)
    (out / f"{name}.trl" / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")
    with (out / f"{name}.columns.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *run])
        writer.writerows([step, *(float(run[column][step]) for column in run)] for step in order)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for cause in CAUSES:
        for number in range(SEEDS.get(cause, OTHER_SEEDS)):
            columns, rows = run_of(cause, number)
            write(f"{cause.replace(' ', '_')}.{number}", columns, rows, target)

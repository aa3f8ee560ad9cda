"""Cells of a results folder as verl logs without evaluations, with their fate by the evaluations.

python tools/diagnose_study/recorded_runs.py RESULTS OUT
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pandas as pd

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.results import load

VERL = {
    "batch_reward": "critic/score/mean",
    "entropy": "actor/entropy",
    "grad_norm": "actor/grad_norm",
    "length_mean": "response_length/mean",
    "kl_mu_theta_k3": "rollout_corr/k3_kl",
    "ess_ratio": "staleness/ess_ratio",
    "lag_mean": "training/off_policy/trajectory_staleness/mean",
    "lag_max": "training/off_policy/trajectory_staleness_worst/max",
}
PLAIN = {"batch_reward": "reward"}


def main(results: Path, out: Path) -> None:
    """Write every judged cell at a lag of 2 or more."""
    found = load(results)
    judged = events(found)
    judged = judged[(judged["event"] != "not applicable") & (judged["staleness"] >= 2)]
    tables = dict(iter(found.step_columns(*VERL).groupby("key", sort=False)))
    fates = []
    for cell in judged.to_dict("records"):
        table: pd.DataFrame = tables[cell["key"]]
        name = str(cell["key"])
        rows = table.to_dict("records")
        logged = [{VERL[column]: row[column] for column in VERL} | {"actor/pg_loss": 0.0} for row in rows]
        lines = [json.dumps({"step": int(row["step"]), "data": data}) for row, data in zip(rows, logged, strict=True)]
        (out / f"{name}.verl.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        table.rename(columns=PLAIN).drop(columns="key").to_csv(out / f"{name}.columns.csv", index=False)
        fates.append((name, cell["event"], cell["onset"]))
    with (out / "fates.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("run", "event", "onset"), *fates])


if __name__ == "__main__":
    target = Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]), target)

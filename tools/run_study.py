"""Runs what is left of a study with a ladder of learning rates, and adds a row to its table for each run that ends.

python tools/run_study.py tuned-64 --out results/tuned-64 --from-update 100

Its model lies in the working directory. The same command goes on after a stop, also on another machine, where it
repeats only runs that are not in the table. Bits depend on the CPU's vector instructions, so all runs use AVX2, which
newer CPUs have too; make the model with `ATEN_CPU_CAPABILITY=avx2` as well.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import yaml

import vcpo_bench as vb
from studies.ladders import Runs, runs_left

STUDIES = Path(__file__).resolve().parents[1] / "studies"
PLACE = ["method", "staleness", "lr", "seed"]


def main(name: str, out: Path, first: int) -> None:
    """Run a study to its end."""
    preset = yaml.safe_load((STUDIES / name / "design.yaml").read_text())["preset"]
    path = STUDIES / name / "tables" / "runs.csv"
    table = pd.read_csv(path)
    while (asked := next(runs_left(preset, table), None)) is not None:
        print(*asked, flush=True)
        train(preset["choose"], asked, out)
        new = rows(out, first)
        table = pd.concat([table, new]).drop_duplicates(PLACE).sort_values(PLACE, ignore_index=True)
        table.to_csv(path, index=False)


def train(settings: dict[str, object], asked: Runs, out: Path) -> None:
    """Train some runs in a process of their own."""
    seeds = ",".join(f"{seed}-{seed}" for seed in asked.seeds)  # a number alone would be how many
    own = {"methods": asked.method, "staleness": str(asked.lag), "lr": str(asked.lr), "seeds": seeds, "out": str(out)}
    file = out.with_suffix(".yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(settings | own))
    command = [sys.executable, "-m", "vcpo_bench", "run", "--config", str(file), "--quiet"]
    subprocess.run(command, check=True, env=os.environ | {"ATEN_CPU_CAPABILITY": "avx2"})


def rows(out: Path, first: int) -> pd.DataFrame:
    """One row for each run that ended: gains over the start, and medians and means after the lag is reached.

    Args:
        out: Results folder.
        first: The update from which evaluations count for the outcome.
    """
    tables = vb.load(out)
    return pd.DataFrame([_row(cell, tables, first) for _, cell in tables.cells.iterrows()])


def _row(cell: "pd.Series[float]", tables: vb.Tables, first: int) -> dict[str, object]:
    evaluations = tables["evaluations"][tables["evaluations"].key == cell.key].set_index("step")
    steps = tables["steps"][(tables["steps"].key == cell.key) & (tables["steps"].step >= cell.staleness)]
    reward, end = evaluations.sampled_reward, cell.steps
    gains = {
        "outcome": reward.loc[first:].mean(),
        "middle": reward.loc[end // 3 + 1 : 2 * end // 3].mean(),
        "last": reward.loc[2 * end // 3 + 1 :].mean(),
    }
    measured = {
        "start": reward[0],
        **{name: value - reward[0] for name, value in gains.items()},
        "end": reward.iloc[-3:].mean(),
        "greedy": evaluations.greedy_reward.iloc[-3:].mean(),
        "ess": steps.ess_ratio.median(),
        "kl": steps.kl_mu_theta_k1.median(),
        "cut": steps[["share_clipped", "share_masked"]].sum(axis=1).mean(),
        "scale": steps.step_scale.mean(),
        "length": steps.length_mean.mean(),
    }
    place: dict[str, object] = {name: cell[name] for name in PLACE}
    return place | {name: round(float(value), 5) for name, value in measured.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", help="folder of `studies`")
    parser.add_argument("--out", type=Path, required=True, help="results folder")
    parser.add_argument("--from-update", type=int, required=True, help="from which evaluations count for the outcome")
    given = parser.parse_args()
    main(given.study, given.out, given.from_update)

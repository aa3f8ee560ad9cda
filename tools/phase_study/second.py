"""A second wave of seeds, judged by itself beside the first: `python tools/phase_study/second.py RESULTS`.

Takes the runs of the second wave from a results folder, writes `second/runs.csv` and `second/answers.csv` of the phase
study, and then its page. Without RESULTS it writes what follows from the shipped runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd

from phase_study.contrasts import rates, rewards
from phase_study.horizons import horizons
from phase_study.page import refresh
from phase_study.tables import FOLDER, RUNS, boundaries, complete, exponents, joined, run_table, shipped
from phase_study.waves import ANSWERS, SECOND, SEEDS, compared


def answers(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Every registered number of the first wave, of the second by itself, and of both; see `waves.compared`.

    Args:
        first: Runs of the first wave's complete seeds.
        second: Runs of the second wave's complete seeds.
    """
    both = joined(first, second)
    bounds = boundaries(both)  # searches of later seeds begin at the medians of earlier ones
    waves = {"first": first, "second": second, "both": both}
    found = {}
    for name, runs in waves.items():
        own = bounds[bounds["seed"].isin(runs["seed"].unique())]
        found[name] = {
            "law": exponents(own).query("lag == 'asked'"),
            "rate": rates(runs, own),
            "reward": rewards(own),
            "horizon": horizons(runs),
        }
    return compared(found)


def ended_seeds() -> list[int]:
    """The seeds of the second wave, all of whose searches have ended, by the shipped runs."""
    return sorted(set(complete(joined(shipped(RUNS), shipped(SECOND / RUNS.name)))) & set(SEEDS))


def main(arguments: list[str]) -> None:
    """Take the runs from a results folder if one is named, and write what follows."""
    if arguments:
        SECOND.mkdir(exist_ok=True)
        made = run_table(Path(arguments[0]))
        made[made["seed"].isin(SEEDS)].to_csv(SECOND / RUNS.name, index=False, float_format="%.10g")
    first, second = shipped(RUNS), shipped(SECOND / RUNS.name)
    ended = ended_seeds()
    print(f"complete seeds of the second wave: {ended}")
    table = answers(first, second[second["seed"].isin(ended)])
    table.to_csv(SECOND / ANSWERS, index=False, float_format="%.6g")
    refresh(FOLDER)


if __name__ == "__main__":
    main(sys.argv[1:])

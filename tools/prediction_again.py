"""Judges the runs of rules 1.0 made again: `python tools/prediction_again.py RESULTS`.

Writes the tables of docs/studies/prediction/again: AUROC of the signals that were registered, ESS less each rival, and
how the fates agree with those of the first runs. No training.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.commands.prediction import at_least_lag
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.added_value_of_ess import in_common
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS, auroc_table
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Array, Panel, build_panel
from vcpo_bench.analysis.results import Results, load_comparable

STUDIES = Path(__file__).resolve().parents[1] / "docs" / "studies"
AGAIN = STUDIES / "prediction" / "again"
FIRST = STUDIES / "protocol" / "tables-three-rates" / "scores.csv"
"""How each of the first runs ended."""
LEADS = (20, 50, 100)
RIVALS = ("reward_low", "kl", "token_ess", "grad_norm", "grad_norm_z")
LEAST_LAG = 2
MARGIN = 0.05
PLACE = ["task", "method", "regime", "staleness", "lr", "seed"]


def differences(panel: Panel) -> pd.DataFrame:
    """AUROC of ESS less that of each rival, over the cases and controls that both can rank.

    Returns:
        Columns `rival`, `lead`, `n_collapsed`, `n_healthy`, `ess`, `its` (AUROC of both), `value`, `low`, `high` (95%
        percentile interval, configurations resampled), `low90`, `high90`, `verdict`.
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    return pd.DataFrame([_difference(panel, rival, lead, draws) for lead in LEADS for rival in RIVALS])


def _difference(panel: Panel, rival: str, lead: int, draws: Array) -> dict[str, Any]:
    sets = risk_sets(panel, lead)
    ess, other = in_common(*(compare_signal(panel, name, sets) for name in (PRIMARY, rival)))
    failed, never = ess.runs(panel.healthy)
    row: dict[str, Any] = {"rival": rival, "lead": lead, "n_collapsed": failed.size, "n_healthy": never.size}
    if not panel.enough(failed, never):
        return row | {"verdict": TOO_FEW}
    value = ess.auroc() - other.auroc()
    drawn = ess.replicates(draws, panel.cluster) - other.replicates(draws, panel.cluster)
    row |= {"ess": ess.auroc(), "its": other.auroc(), "value": value}
    row["low"], row["high"] = percentile_interval(value, drawn)
    row["low90"], row["high90"] = np.nanquantile(drawn, [0.05, 0.95])
    return row | {"verdict": verdict(row)}


def verdict(row: dict[str, Any]) -> str:
    """The word that was registered for a difference with its intervals."""
    if row["low"] > 0 or row["high"] < 0:
        return "more" if row["value"] > 0 else "less"
    return "equivalent" if row["low90"] >= -MARGIN and row["high90"] <= MARGIN else "undecided"


def fates(results: Results, first: pd.DataFrame) -> pd.DataFrame:
    """Each run with its event the first time and now.

    Args:
        results: The runs made again.
        first: Table of scores of the first ones.

    Returns:
        Columns of `PLACE`, `event_first`, `onset_first`, `event`, `onset`; a run that only one of both has is left out.
    """
    now = events(results)[[*PLACE, "event", "onset"]]
    both = first[[*PLACE, "event", "onset"]].merge(now, on=PLACE, suffixes=("_first", ""), validate="one_to_one")
    return both.sort_values(PLACE, ignore_index=True)


def main(arguments: list[str]) -> None:
    """Judge and write."""
    results = load_comparable([Path(one) for one in arguments])
    panel = build_panel(at_least_lag(results, LEAST_LAG))
    tables = {
        "auroc": auroc_table(panel, (PRIMARY, *RIVALS), LEADS),
        "differences": differences(panel),
        "fates": fates(results, pd.read_csv(FIRST)),
    }
    AGAIN.mkdir(exist_ok=True)
    for name, table in tables.items():
        table.to_csv(AGAIN / f"{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main(sys.argv[1:])

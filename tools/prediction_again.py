"""Judges the runs of rules 1.0 made again: `python tools/prediction_again.py RESULTS`.

Writes the tables of docs/studies/prediction/again: AUROC of the signals that were registered, ESS less each rival, and
how the runs end beside how the first ones did. No training.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from configuration_study.areas import area, compared, paired

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.commands.prediction import at_least_lag
from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW, Panel, build_panel
from vcpo_bench.analysis.results import Results, load_comparable
from vcpo_bench.errors import UsageError

STUDIES = Path(__file__).resolve().parents[1] / "docs" / "studies"
AGAIN = STUDIES / "prediction" / "again"
FIRST = STUDIES / "protocol" / "tables-three-rates" / "scores.csv"
"""How each of the first runs ended."""
LEADS = (20, 50)
RIVALS = ("reward_low", "kl", "token_ess", "grad_norm", "grad_norm_z")
LEAST_LAG = 2
CHANCE = 0.5
PLACE = ["task", "method", "regime", "staleness", "lr", "seed"]


def areas(panel: Panel) -> pd.DataFrame:
    """AUROC of each signal at each lead, against runs of the same task, regime and lag that are still up.

    Returns:
        Columns `signal`, `lead`, `failed`, `never_fail`, `units` (of the failed runs: configurations, twins joined),
        `value`, `low`, `high` (95%, t over units), `verdict` (of the primary outcome only).
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    rows = []
    for lead in LEADS:
        sets = risk_sets(panel, lead)
        for name in (PRIMARY, *RIVALS):
            row = {"signal": name, "lead": lead} | area(compare_signal(panel, name, sets), panel, draws)
            primary = (name, lead) == (PRIMARY, PRIMARY_LEAD)
            rows.append(row | {"verdict": told(row["low"], row["high"]) if primary else ""})
    return pd.DataFrame(rows)


def told(low: float, high: float) -> str:
    """The registered word for an AUROC with its interval; NaN: too few runs or units."""
    if low != low:
        return TOO_FEW
    return "can tell" if low > CHANCE else "cannot" if high < CHANCE else "undecided"


def differences(panel: Panel) -> pd.DataFrame:
    """AUROC of ESS less that of each rival at the primary lead, over what both can rank, paired.

    Returns:
        Columns `rival`, `failed`, `never_fail`, `units`, `ess`, `its` (AUROC of both), `value`, `low`, `high` (95%),
        `low90`, `high90`, `p`, `p_holm` (over the rivals), `verdict`.
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    sets = risk_sets(panel, PRIMARY_LEAD)
    table = pd.DataFrame([{"rival": name} | paired(panel, sets, name, draws) for name in RIVALS])
    table = table.assign(p_holm=holm(table["p"]))
    return table.assign(verdict=[compared(row) for row in table.to_dict("records")])


def fates(results: Results, first: pd.DataFrame) -> pd.DataFrame:
    """Each run with its event the first time and now.

    Args:
        results: The runs made again.
        first: Table of scores of the first ones.

    Returns:
        Columns of `PLACE`, `event_first`, `onset_first`, `event`, `onset`.

    Raises:
        UsageError: A run is missing, or there is one that the first time had not.
    """
    now = events(results)[[*PLACE, "event", "onset"]]
    both = first[[*PLACE, "event", "onset"]].merge(now, on=PLACE, suffixes=("_first", ""), validate="one_to_one")
    if not len(both) == len(first) == len(now):
        raise UsageError(
            f"{len(now)} runs, of which {len(both)} are among the {len(first)} first ones: make the others"
        )
    return both.sort_values(PLACE, ignore_index=True)


def tables(results: Results) -> dict[str, pd.DataFrame]:
    """All tables, by the name of their file."""
    ended = fates(results, pd.read_csv(FIRST))
    panel = build_panel(at_least_lag(results, LEAST_LAG))
    return {"fates": ended, "auroc": areas(panel), "differences": differences(panel)}


def main(arguments: list[str]) -> None:
    """Judge and write."""
    AGAIN.mkdir(exist_ok=True)
    for name, table in tables(load_comparable([Path(one) for one in arguments])).items():
        table.to_csv(AGAIN / f"{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main(sys.argv[1:])

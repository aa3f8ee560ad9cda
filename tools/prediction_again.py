"""Judges the runs of rules 1.0 made again: `python tools/prediction_again.py RESULTS`; without a folder, the page only.

Writes the tables of docs/studies/prediction/again: AUROC of the signals that were registered, ESS less each rival, and
how the runs end beside how the first ones did; and what follows from them on the page of the study. No training.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from configuration_study.areas import area, compared, paired
from configuration_study.tables import write_all
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.commands.prediction import analyze_prediction, at_least_lag
from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, TOO_FEW, Panel, build_panel
from vcpo_bench.analysis.results import Results, load_comparable
from vcpo_bench.analysis.wording import interval_of
from vcpo_bench.errors import UsageError

STUDIES = Path(__file__).resolve().parents[1] / "docs" / "studies"
AGAIN = STUDIES / "prediction" / "again"
PAGE = AGAIN.parent / "README.md"
TOOL = "tools/prediction_again.py"
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


def sentences(ended: pd.DataFrame) -> str:
    """How the runs end beside the first ones, as a list."""
    failed_first, failed = (ended[name].notna() for name in ("onset_first", "onset"))
    same, moved = (failed_first == failed).sum(), (ended["event_first"] != ended["event"]).sum()
    both = ended[failed_first & failed]
    early = (both["onset"] == both["onset_first"]).sum()
    return (
        f"- {len(ended)} runs, {failed.sum()} failed (the first time {failed_first.sum()}). {same} of {len(ended)} "
        f"meet the same fate; {moved} have another event of the rule.\n"
        f"- Of the {len(both)} that fail both times, {early} are found down at the same evaluation.\n"
    )


def beside(told: pd.DataFrame, gaps: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame:
    """One row per signal: AUROC at both leads, the first estimate, and ESS less it.

    Args:
        told: Of `areas`.
        gaps: Of `differences`.
        first: The study's own table of AUROC.
    """
    now = {(row["signal"], row["lead"]): row for row in told.to_dict("records")}
    old = first.set_index(["signal", "lead"])["value"]
    less = {row["rival"]: row for row in gaps.to_dict("records")}
    rows = []
    for name in (PRIMARY, *RIVALS):
        row: dict[str, object] = {"signal": name}
        for lead in LEADS:
            row |= {f"{lead} ahead": with_ends(now[name, lead]), f"first, {lead}": old.get((name, lead))}
        gap = less.get(name)
        row |= {"ESS less it": with_ends(gap, 3) if gap else ""}
        rows.append(row | {"verdict": (gap or now[PRIMARY, PRIMARY_LEAD])["verdict"]})
    return pd.DataFrame(rows)


def with_ends(row: Mapping[Any, Any], digits: int = 2) -> str:
    """A value with its interval; too few runs or units: that."""
    return TOO_FEW if pd.isna(row["value"]) else interval_of(row, digits=digits)


def refresh() -> None:
    """Write the parts of the page that follow from the shipped tables."""
    told, gaps, ended = (pd.read_csv(AGAIN / f"{name}.csv") for name in ("auroc", "differences", "fates"))
    first = pd.read_csv(AGAIN.parent / "tables" / "auroc.csv")
    parts = {"fates": sentences(ended), "again": markdown(beside(told, gaps, first))}
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), parts, TOOL), encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Judge the runs of folders, if any are named, and write."""
    if arguments:
        AGAIN.mkdir(exist_ok=True)
        results = load_comparable([Path(one) for one in arguments])
        for name, table in tables(results).items():
            table.to_csv(AGAIN / f"{name}.csv", index=False, float_format="%.6g")
        write_all(analyze_prediction(results), AGAIN / "tables")
    refresh()


if __name__ == "__main__":
    main(sys.argv[1:])

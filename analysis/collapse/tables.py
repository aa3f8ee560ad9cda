"""Which runs failed, when, and how certain is that? The tables of `lab analyze collapse`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import FAILURES, KINDS, UNDECIDED
from vcpo_bench.analysis.collapse.survival import kaplan_meier, least_p, log_rank
from vcpo_bench.analysis.intervals import ENOUGH, wilson
from vcpo_bench.analysis.results import GROUP

PLACE = ["task", "regime", "staleness", "lr"]
"""Survival is compared within the same task, regime, lag and learning rate."""


def failure_rates(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Failures per group of seeds with Wilson intervals.

    Args:
        verdicts: Of `analysis.collapse.rule.events`.

    Returns:
        Columns: the group; one count per kind of event; `collapsed` of `judged` (undecided ones left out); `rate`,
        `low`, `high`, where `low` counts every run that an alarm stopped as one that would have survived and
        `high` as one that would have failed; `onset` (median, among the failed).
    """
    rows = []
    for group, cells in verdicts.groupby(GROUP, sort=False):
        counts = {kind: int((cells["event"] == kind).sum()) for kind in KINDS}
        failed = sum(counts[kind] for kind in FAILURES)
        judged, stopped = len(cells) - sum(counts[kind] for kind in UNDECIDED), counts["stopped"]
        low, high = _ends(failed, stopped, judged + stopped)
        share = failed / judged if judged else np.nan
        onset = cells.loc[cells["collapsed"], "onset"].median()
        summary = {"collapsed": failed, "judged": judged, "rate": share, "low": low, "high": high, "onset": onset}
        rows.append(dict(zip(GROUP, group, strict=True)) | counts | summary)
    return pd.DataFrame(rows)


def failure_rates_by_lag(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Failures per method and lag over all tasks and learning rates, of the runs that the rule applies to.

    Columns: `staleness`, `method`, `collapsed` of `runs`, `stopped` (by an alarm: counted as survived in `low` and as
    failed in `high`), `rate`, `low`, `high` (Wilson).
    """
    rows = []
    for (lag, method), cells in applicable(verdicts).groupby(["staleness", "method"]):
        failed, runs, stopped = int(cells["collapsed"].sum()), len(cells), int((cells["event"] == "stopped").sum())
        row = {"staleness": lag, "method": method, "collapsed": failed, "runs": runs, "stopped": stopped}
        low, high = _ends(failed, stopped, runs)
        rows.append(row | {"rate": failed / runs, "low": low, "high": high})
    columns = ["staleness", "method", "collapsed", "runs", "stopped", "rate", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _ends(failed: int, stopped: int, runs: int) -> tuple[float, float]:
    """Wilson interval of a collapse rate, wider for the unknown fate of stopped runs; none below `ENOUGH` runs."""
    return (wilson(failed, runs)[0], wilson(failed + stopped, runs)[1]) if runs >= ENOUGH else (np.nan, np.nan)


def survival_table(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Kaplan-Meier curves per method and lag over all tasks and learning rates.

    Columns: `method`, `staleness` and those of `analysis.collapse.survival.kaplan_meier`.
    """
    curves = []
    for name, cells in _timed(verdicts).groupby(["method", "staleness"]):
        curve = kaplan_meier(cells["time"], cells["collapsed"])
        if len(cells) < ENOUGH:
            curve[["low", "high"]] = np.nan
        place = dict(zip(("method", "staleness"), name, strict=True))
        curves.append(pd.DataFrame(place, index=curve.index).join(curve))
    names = ["method", "staleness", "time", "at_risk", "events", "censored", "survival", "low", "high"]
    return pd.concat(curves, ignore_index=True)[names] if curves else pd.DataFrame(columns=names)


def log_rank_table(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Do methods fail at different rates over time? Log-rank tests stratified by task, regime, lag and learning rate.

    Columns: `staleness` (`all` or one lag), `methods`, `runs`, `collapsed`, `fewest` (runs of a method), `chi2`,
    `degrees`, `p` (NaN where `fewest` is below `ENOUGH`), and `least_p`: the smallest p that an exact test of so many
    runs could give.
    """
    judged = _timed(verdicts)
    judged = judged[judged["staleness"] > 0]
    scopes = {"all": judged} | {str(lag): here for lag, here in judged.groupby("staleness")}
    rows = []
    for name, cells in scopes.items():
        stratum = cells.groupby(PLACE, sort=False).ngroup()
        facts = {"staleness": name, "methods": cells["method"].nunique(), "runs": len(cells)}
        test = log_rank(cells["time"], cells["collapsed"], cells["method"], stratum)
        fewest = int(cells["method"].value_counts().min()) if len(cells) else 0
        facts |= {"collapsed": int(cells["collapsed"].sum()), "fewest": fewest} | test._asdict()
        facts |= {"p": test.p if fewest >= ENOUGH else np.nan}
        rows.append(facts | {"least_p": least_p(cells["method"], stratum)})
    return pd.DataFrame(rows)


def applicable(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The runs that the rule applies to."""
    return verdicts[verdicts["event"] != "not applicable"]


def _timed(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Runs the rule applies to, with the time of failure or of the last evaluation.

    A run of which neither is known, such as one whose evaluations cannot be read, is in no risk set.
    """
    judged = applicable(verdicts)
    time = judged["onset"].where(judged["collapsed"], judged["last_step"])
    return judged.assign(time=time)[time.notna()]

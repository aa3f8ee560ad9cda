"""Which runs were lost, when, and how sure is that? Tables and sentences of `analyze collapse`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import FAILURES, KINDS, UNDECIDED, events, sensitivity
from vcpo_bench.analysis.collapse.survival import kaplan_meier, log_rank, median_survival, restricted_mean
from vcpo_bench.analysis.findings import GROUP, Findings
from vcpo_bench.analysis.intervals import wilson
from vcpo_bench.analysis.results import Results

PLACE = ["task", "regime", "staleness", "lr"]
"""Survival is compared within the same task, regime, lag and rate."""


def analyze_collapse(results: Results) -> Findings:
    """Tables `events`, `rates`, `survival`, `lifetimes`, `log_rank` and `sensitivity`."""
    verdicts = events(results)
    rates, tests, moved = failure_rates(verdicts), log_rank_table(verdicts), sensitivity(results)
    curves, lifetimes = survival_tables(verdicts)
    columns = ["key", *GROUP, "seed", "status", "event", "onset", "lowest", "final", "falls", "unresolved", "ended_nan"]
    tables = {"events": verdicts[columns], "rates": rates, "survival": curves, "lifetimes": lifetimes}
    text = [_count_sentence(verdicts), *_lag_sentences(verdicts), *_test_sentences(tests), _sensitivity_sentence(moved)]
    return Findings(text, tables | {"log_rank": tests, "sensitivity": moved})


def failure_rates(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Failures per group of seeds with Wilson intervals.

    Args:
        verdicts: Of `analysis.collapse.rule.events`.

    Returns:
        Columns: the group; one count per kind of event; `failed` of `judged` (undecided ones left out); `rate`,
        `low`, `high`, where `low` takes every run that an alarm stopped for one that would have lived and
        `high` for one that would have been lost; `onset` (median, among the failed).
    """
    rows = []
    for group, cells in verdicts.groupby(GROUP, sort=False):
        counts = {kind: int((cells["event"] == kind).sum()) for kind in KINDS}
        failed = sum(counts[kind] for kind in FAILURES)
        judged, stopped = len(cells) - sum(counts[kind] for kind in UNDECIDED), counts["stopped"]
        low, high = wilson(failed, judged + stopped)[0], wilson(failed + stopped, judged + stopped)[1]
        share = failed / judged if judged else np.nan
        onset = cells.loc[cells["failed"], "onset"].median()
        summary = {"failed": failed, "judged": judged, "rate": share, "low": low, "high": high, "onset": onset}
        rows.append(dict(zip(GROUP, group, strict=True)) | counts | summary)
    return pd.DataFrame(rows)


def survival_tables(verdicts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Kaplan-Meier curves per method and lag over all tasks and rates, and what they say about lifetimes.

    Returns:
        The curves (`method`, `staleness` and the columns of `analysis.collapse.survival.kaplan_meier`)
        and one
        row per curve: `runs`, `failed`, `median` (updates; infinite: most survived), `mean`, `mean_low`,
        `mean_high` (restricted to `horizon`, the longest time that runs of every curve were, or would have been,
        watched).
    """
    judged = _judged(verdicts)
    curves, rows = [], []
    watched = judged.groupby(["method", "staleness"])["watched"].max()
    horizon = float(watched.min()) if len(watched) else np.nan
    for name, cells in judged.groupby(["method", "staleness"]):
        curve = kaplan_meier(cells["time"], cells["failed"])
        place = dict(zip(("method", "staleness"), name, strict=True))
        curves.append(pd.DataFrame(place, index=curve.index).join(curve))
        mean, low, high = restricted_mean(curve, horizon)
        facts = {"runs": len(cells), "failed": int(cells["failed"].sum()), "median": median_survival(curve)}
        rows.append(place | facts | {"mean": mean, "mean_low": low, "mean_high": high, "horizon": horizon})
    names = ["method", "staleness", "time", "at_risk", "events", "censored", "survival", "low", "high"]
    joined = pd.concat(curves, ignore_index=True)[names] if curves else pd.DataFrame(columns=names)
    return joined, pd.DataFrame(rows)


def log_rank_table(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Do the methods fail at different rates? Log-rank tests stratified by task, regime, lag and rate.

    Columns: `staleness` (`all` or one lag), `methods`, `runs`, `failed`, `chi2`, `degrees`, `p`.
    """
    judged = _judged(verdicts)
    judged = judged[judged["staleness"] > 0]
    scopes = {"all": judged} | {str(lag): here for lag, here in judged.groupby("staleness")}
    rows = []
    for name, cells in scopes.items():
        stratum = cells.groupby(PLACE, sort=False).ngroup()
        facts = {"staleness": name, "methods": cells["method"].nunique(), "runs": len(cells)}
        test = log_rank(cells["time"], cells["failed"], cells["method"], stratum)
        rows.append(facts | {"failed": int(cells["failed"].sum())} | test._asdict())
    return pd.DataFrame(rows)


def _judged(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Runs the rule applies to: time of failure or last evaluation, and how long each was or would be watched."""
    judged = verdicts[verdicts["event"] != "not applicable"]
    time = judged["onset"].where(judged["failed"], judged["last_step"])
    return judged.assign(time=time, watched=judged["steps"].where(judged["failed"], judged["last_step"]))


def _count_sentence(verdicts: pd.DataFrame) -> str:
    counts = verdicts["event"].value_counts()
    listed = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if kind in counts.index)
    open_ended = int(verdicts["unresolved"].sum())
    more = f" {open_ended} were down at their last evaluation, too briefly to call." if open_ended else ""
    return f"Of {len(verdicts)} runs: {listed}.{more}"


def _lag_sentences(verdicts: pd.DataFrame) -> list[str]:
    sentences = []
    judged = verdicts[verdicts["event"] != "not applicable"]
    for lag, here in judged.groupby("staleness"):
        parts = []
        for method, cells in here.groupby("method"):
            failed, total, stopped = int(cells["failed"].sum()), len(cells), int((cells["event"] == "stopped").sum())
            low, high = wilson(failed, total)[0], wilson(failed + stopped, total)[1]
            more = f" and {stopped} stopped by an alarm" if stopped else ""
            parts.append((failed / total, f"{method} {failed} of {total}{more} [{low:.0%}, {high:.0%}]"))
        listed = "; ".join(text for _, text in sorted(parts))
        sentences.append(f"Lag {lag}, runs lost (95% Wilson interval of the rate): {listed}.")
    return sentences


def _test_sentences(tests: pd.DataFrame) -> list[str]:
    sentences = []
    for row in tests.to_dict("records"):
        where = "over all lags" if row["staleness"] == "all" else f"at lag {row['staleness']}"
        if not np.isfinite(row["p"]):
            sentences.append(f"Survival {where} cannot be compared: nothing failed, or there is one method.")
            continue
        differ = "differ" if row["p"] < 0.05 else "cannot be told apart"
        sentences.append(
            f"The methods' survival curves {differ} {where} (log-rank stratified by task, lag and rate, "
            f"p = {row['p']:.2g}, {row['failed']} of {row['runs']} runs lost)."
        )
    return sentences


def _sensitivity_sentence(table: pd.DataFrame) -> str:
    worst = table.sort_values("agreement").iloc[0]
    return (
        f"Over {len(table)} versions of the rule, {table['failed'].min()} to {table['failed'].max()} runs count as "
        f"lost; the verdict stays the same for at least {worst['agreement']:.0%} of runs (least with depth "
        f"{worst['depth']}, patience {worst['patience']:.0f}, smallest drop {worst['min_drop']})."
    )

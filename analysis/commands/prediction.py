"""`lab analyze prediction`: can failure be predicted, how early, and at what cost?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.findings import NOTE, CellsBehind, Finding, Findings, agreeing, own_key
from vcpo_bench.analysis.prediction import sentences as say
from vcpo_bench.analysis.prediction.alarms import alarms_table
from vcpo_bench.analysis.prediction.auroc import auroc_table, matching_table
from vcpo_bench.analysis.prediction.overview import PLACE, failures_table, recorded_signals, runs_table, signals_table
from vcpo_bench.analysis.prediction.panel import LEAST_RUNS, Panel, build_panel, panels_by_signal
from vcpo_bench.analysis.results import Results
from vcpo_bench.naming.parameters import integer

LEAST_LAG = 2
"""Runs at a smaller lag are left out unless asked for."""


def _no_lag(results: Results, least: int) -> Findings:
    """Runs without lag have nothing to be alarmed about."""
    runs = runs_table(results)
    found = Findings({"runs": runs}, {"runs": agreeing(results.cells, *PLACE)})
    text = (
        f"No run has a lag of {least} or more, so nothing is predicted. prediction(least_lag=0) takes all runs; those "
        "at lags 0 and 1 are in no such danger and make false alarms look rare."
    )
    found.statements.append(found.finding(NOTE, text, "runs", runs, ("staleness", "started")))
    return found


def _nothing_to_predict(found: Findings) -> Finding:
    """Why nothing can be predicted: no signals, or no runs that could be judged."""
    signals, runs = found.tables["signals"], found.tables["runs"]
    if not signals["recorded"].any():
        text = "No run recorded a signal: nothing can be predicted from these results."
        return found.finding(NOTE, text, "signals", signals, ("signal", "recorded"))
    text = (
        "No run that recorded a signal could be judged by the collapse rule: nothing can be predicted from these "
        "results. Such runs ended in an error, have too few evaluations, or never learned."
    )
    return found.finding(NOTE, text, "runs", runs, ("started", "not_judged"))


def analyze_auroc(results: Results) -> Findings:
    """The primary endpoint at all lags, for reports: table `auroc`, empty where too few runs failed or survived."""
    failed = events(results)["collapsed"]
    if min(int(failed.sum()), int((~failed).sum())) < LEAST_RUNS:
        return Findings({"auroc": pd.DataFrame()}, {"auroc": own_key})
    judged, recorded = pd.Series(dtype=object), dict[str, pd.Series]()

    def panels() -> Iterator[Panel]:
        nonlocal judged
        for panel in panels_by_signal(results):
            judged = panel.runs["key"]
            recorded.update(_recorded(panel))
            yield panel

    tables = {"auroc": auroc_table(panels())}
    found = Findings(tables, _cells_behind(tables, judged, recorded))
    found.statements += say.primary_endpoint(found)
    return found


def _recorded(panel: Panel) -> dict[str, pd.Series]:
    """Keys of the runs that recorded each signal."""
    judged = panel.runs["key"]
    return {name: judged[np.asarray(np.isfinite(values).any(axis=1))] for name, values in panel.values.items()}


def _cells_behind(
    tables: Iterable[str], judged: pd.Series, recorded: Mapping[str, pd.Series]
) -> dict[str, CellsBehind]:
    """For each table, the runs that recorded the signals its rows name, or all judged runs."""

    def behind(rows: pd.DataFrame) -> Iterable[str]:
        if "signal" not in rows or "recorded" in rows:
            return judged
        return [key for name in rows["signal"].unique() for key in recorded.get(name, judged)]

    return dict.fromkeys(tables, behind)


@dataclass(frozen=True, kw_only=True)
class Prediction(Analysis):
    """`vcpo-bench lab analyze prediction`."""

    name = "prediction"
    summary = "Whether collapse can be predicted, how early, and at what cost"

    least_lag: int = integer(LEAST_LAG, minimum=0)

    def run(self, results: Results) -> Findings:
        """Can failure be predicted, how early, and at what cost in false alarms? Where no run has such a lag: a note.

        Tables: `runs` (all that were started), `collapses`, `signals` (what each is), `auroc`, `matching`, `alarms`,
        each documented by the function of its name in `analysis.prediction`. Runs at a smaller lag are left out, failed
        or healthy, so that runs that are in no danger do not dilute the rates of false alarms.
        """
        if results.cells["staleness"].max() < self.least_lag:
            return _no_lag(results, self.least_lag)
        if self.least_lag:
            results = results.select(results.cells.loc[results.cells["staleness"] >= self.least_lag, "key"])
        panel = build_panel(results)
        found = Findings({"runs": runs_table(results), "signals": signals_table(recorded_signals(results, panel))}, {})
        if panel.recorded():
            found.tables |= {"collapses": failures_table(panel), "auroc": auroc_table([panel])}
            found.tables |= {"matching": matching_table(panel), "alarms": alarms_table(panel)}
        found.cells_behind |= _cells_behind(found.tables, panel.runs["key"], _recorded(panel))
        found.cells_behind |= {"collapses": own_key, "runs": agreeing(results.cells, *PLACE)}
        if not panel.recorded():
            found.statements.append(_nothing_to_predict(found))
            return found
        found.statements += [*say.runs(found), *say.shared_fates(found), *say.twins(found, panel)]
        found.statements += [*say.failing_methods(found), *say.primary_endpoint(found), *say.rivals(found)]
        found.statements += [*say.alarms(found), *say.unrecorded_signals(found)]
        return found

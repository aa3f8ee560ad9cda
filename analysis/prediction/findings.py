"""`vcpo-bench analyze prediction`: every table of the evaluation, and what they say in sentences."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED, events
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.monitoring.signals import SIGNALS
from vcpo_bench.analysis.prediction import sentences
from vcpo_bench.analysis.prediction.added_value_of_ess import increment_table
from vcpo_bench.analysis.prediction.auroc import auroc_table, matching_table
from vcpo_bench.analysis.prediction.export_detectors import detectors_json
from vcpo_bench.analysis.prediction.generalization import generalization_table
from vcpo_bench.analysis.prediction.hazard import hazard_table
from vcpo_bench.analysis.prediction.k_hat_signal import POOLED, TAIL
from vcpo_bench.analysis.prediction.null_models import nulls_table
from vcpo_bench.analysis.prediction.operating_points import alarm_tables
from vcpo_bench.analysis.prediction.panel import Panel, build_panel
from vcpo_bench.analysis.prediction.risk_models import horizon_tables
from vcpo_bench.analysis.prediction.sensitivity import definitions_table, placements_table, regimes_table
from vcpo_bench.analysis.prediction.signal_verdicts import verdict_table
from vcpo_bench.analysis.results import Results


def analyze_prediction(results: Results) -> Findings:
    """Can collapse be predicted, how early, at what cost, and does ESS add anything over what is known anyway?

    Tables: `runs` (all that were started), `signals` (what each is), `verdicts` (what each turned out to be),
    `auroc`, `matching`, `nulls`, `increment`, `operating`, `episodes`, `misses`, `false_alarms`,
    `thresholds`, `generalization`, `hazard`, `models`, `td_auc`, `calibration`, `definitions`,
    `regimes`, `placements`. Each is documented by the function of its name in this package. Document:
    `detectors.json`, for `analysis.monitoring.alarm_panel.AlarmPanel`.
    """
    panel = build_panel(results, samples=True)
    tables = {"runs": runs_table(results), "signals": signals_table(panel.recorded())}
    if not panel.recorded():
        return Findings(["No run recorded a signal: nothing can be predicted from these results."], tables)
    tables |= panel_tables(panel) | {"definitions": definitions_table(panel, results)}
    study = ", ".join(folder.name for folder in results.folders)
    documents = {"detectors.json": detectors_json(panel, tables["episodes"], study)}
    return Findings(sentences.all_sentences(tables, panel), tables, documents)


def panel_tables(panel: Panel) -> dict[str, pd.DataFrame]:
    """All tables that need nothing but the runs side by side."""
    tables = {"auroc": auroc_table(panel), "matching": matching_table(panel), "nulls": nulls_table(panel)}
    tables["verdicts"] = verdict_table(tables["auroc"], tables["matching"], tables["nulls"])
    tables["increment"] = increment_table(panel)
    alarms = alarm_tables(panel)
    tables |= alarms._asdict()
    tables["generalization"] = generalization_table(panel, alarms.generalization)
    tables["hazard"] = hazard_table(panel)
    tables |= horizon_tables(panel)._asdict()
    return tables | {"regimes": regimes_table(panel), "placements": placements_table(panel)}


def runs_table(results: Results) -> pd.DataFrame:
    """All runs that were started, by task, method, lag and rate.

    Columns: the group; `started`, `healthy` (never lost), `collapsed` (with or without rebound), `nan`,
    `stopped` (by an alarm: censored), `not_judged`, `seeds`.
    """
    verdicts = events(results)
    rows = []
    for group, cells in verdicts.groupby(["task", "method", "staleness", "lr"], sort=True, dropna=False):
        kinds = cells["event"]
        rows.append(
            dict(zip(("task", "method", "staleness", "lr"), group, strict=True))
            | {
                "started": len(cells),
                "healthy": int((~cells["failed"] & ~kinds.isin(UNDECIDED)).sum()),
                "collapsed": int(kinds.isin(["collapse", "collapse with rebound"]).sum()),
                "nan": int((kinds == "nan").sum()),
                "stopped": int((kinds == "stopped").sum()),
                "not_judged": int((kinds == "not applicable").sum()),
                "seeds": int(cells["seed"].nunique()),
            }
        )
    return pd.DataFrame(rows)


def signals_table(recorded: list[str]) -> pd.DataFrame:
    """What each signal is: `signal`, `meaning`, `role`, `recorded` (by at least one run)."""
    rows = [(one.name, one.meaning, str(one.role)) for one in SIGNALS.values()]
    rows.append((TAIL, f"Pareto k-hat of the sequence weights recorded in the last {POOLED} updates", "weights"))
    table = pd.DataFrame(rows, columns=["signal", "meaning", "role"])
    return table.assign(recorded=table["signal"].isin(recorded))

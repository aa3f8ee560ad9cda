"""``vcpo-bench analyze prediction``: every table of the evaluation, and what they say in sentences."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.events import events
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.prediction import words
from vcpo_bench.analysis.prediction.auroc import auroc_table, matching_table
from vcpo_bench.analysis.prediction.panel import build_panel
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.signals import SIGNALS


def analyze_prediction(results: Results) -> Findings:
    """Tables ``runs``, ``signals``, ``auroc`` and ``matching``."""
    panel = build_panel(results)
    tables = {
        "runs": runs_table(results),
        "signals": signals_table(panel.recorded()),
        "auroc": auroc_table(panel),
        "matching": matching_table(panel),
    }
    text = [words.count_sentence(tables["runs"], panel), *words.auroc_sentences(tables["auroc"])]
    text += words.missing_sentences(tables["signals"])
    return Findings(text, tables)


def runs_table(results: Results) -> pd.DataFrame:
    """All runs that were started, by task, method, lag and rate.

    Columns: the group; ``started``, ``healthy`` (never lost), ``collapsed`` (with or without rebound), ``nan``,
    ``not_judged``, ``seeds``.
    """
    verdicts = events(results)
    rows = []
    for group, cells in verdicts.groupby(["task", "method", "staleness", "lr"], sort=True, dropna=False):
        kinds = cells["event"]
        rows.append(
            dict(zip(("task", "method", "staleness", "lr"), group, strict=True))
            | {
                "started": len(cells),
                "healthy": int((~cells["failed"] & (kinds != "not applicable")).sum()),
                "collapsed": int(kinds.isin(["collapse", "collapse with rebound"]).sum()),
                "nan": int((kinds == "nan").sum()),
                "not_judged": int((kinds == "not applicable").sum()),
                "seeds": int(cells["seed"].nunique()),
            }
        )
    return pd.DataFrame(rows)


def signals_table(recorded: list[str]) -> pd.DataFrame:
    """What each signal is: ``signal``, ``meaning``, ``role``, ``recorded`` (by at least one run)."""
    return pd.DataFrame(
        [
            {"signal": one.name, "meaning": one.meaning, "role": one.role, "recorded": one.name in recorded}
            for one in SIGNALS.values()
        ]
    )

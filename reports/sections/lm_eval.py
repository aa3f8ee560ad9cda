"""Scores of kept checkpoints by lm-eval."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.comparison.lm_eval_scores import lm_score_summary
from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import interval, rate, whole
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.scoreboard import describe, task_name
from vcpo_bench.reports.study import ComparisonSetting, Study

_HEADINGS = ["task", "lr", "lag", "method", "lm-eval task", "metric", "updates", "documents", "seeds", "score", "95%"]
_CAPTION = (
    "Latest checkpoint of each cell that `vcpo-bench lab eval` scored on a task: mean over seeds with a 95% Student-t "
    "interval (none with one seed). Controls are marked with an asterisk; (low) marks metrics of which lower is better."
)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One row per setting, method, lm-eval task and metric; nothing where no checkpoint was scored."""
    summary = lm_score_summary(study.results)
    if summary.empty:
        return []
    rows = [_row(ledger, row) for _, row in summary.iterrows()]
    return [Table("lm-eval", _CAPTION, _HEADINGS, rows, numeric=frozenset({1, 2, 6, 7, 8, 9, 10}), settings=6)]


def _row(ledger: Ledger, row: pd.Series) -> list[TableCell]:
    setting = ComparisonSetting(row["task"], row["regime"], float(row["lr"]), int(row["staleness"]))
    metric = row["metric"] if row["filter"] == "none" else f"{row['metric']} ({row['filter']})"
    method = row["method"] + ("*" if row["control"] else "")
    score = ledger.add(
        "lm_eval_score",
        (*describe(setting), method, row["lm_task"], metric, f"after {row['step']} updates"),
        row["value"],
        f"mean over seeds of value where task is {row['lm_task']}, metric {row['metric']} and filter {row['filter']}",
        row["keys"],
        table="lm_eval",
        columns=("step", "task", "metric", "filter", "value"),
        rows=row["rows"],
    )
    low = pd.notna(row["higher_is_better"]) and not row["higher_is_better"]
    width = row["value_high"] - row["value_low"]
    return [
        TableCell(task_name(setting)),
        TableCell(rate(setting.lr), sort=setting.lr),
        TableCell(str(setting.lag), sort=setting.lag),
        TableCell(method, tone="dim" if row["control"] else ""),
        TableCell(row["lm_task"]),
        TableCell(metric + (" (low)" if low else "")),
        TableCell(str(row["step"]), sort=float(row["step"])),
        TableCell(whole(row["documents"]), sort=float(row["documents"])),
        TableCell(str(row["seeds"]), sort=float(row["seeds"])),
        TableCell(score.text, score, row["value"]),
        TableCell(interval(row["value_low"], row["value_high"]), sort=width),
    ]


SECTIONS = (ReportSection("lm-eval", "Scores by lm-eval", 180, blocks),)

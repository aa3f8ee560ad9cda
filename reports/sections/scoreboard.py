"""The scoreboard as a table of the report."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.comparison.scoreboard import ODD_ENDS
from vcpo_bench.records import SYNCHRONOUS
from vcpo_bench.reports.document import Block, Entry, Table
from vcpo_bench.reports.formatting import MISSING, interval, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.study import Setting, Study

_HEADINGS = [
    "task",
    "lr",
    "lag",
    "method",
    "seeds",
    "final reward",
    "95%",
    "best",
    "95%",
    "ESS",
    "failed",
    "not completed",
]


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One row per task, regime, learning rate, lag and method."""
    rows = [_row(study, ledger, row) for _, row in study.board.iterrows()]
    caption = (
        "Reward on held-out prompts at the last and at the best evaluation: mean over seeds with a 95% Student-t "
        "interval (none with one seed). The best evaluation is the maximum of noisy values and therefore optimistic. "
        "ESS: median raw ratio over updates. Failed: collapse, collapse with rebound or nan by the collapse rule, of "
        "the cells it applies to. Controls are marked with an asterisk."
    )
    return [Table("scoreboard", caption, _HEADINGS, rows, numeric=frozenset({1, 2, 4, 5, 6, 7, 8, 9, 10, 11}))]


def _row(study: Study, ledger: Ledger, row: pd.Series) -> list[Entry]:
    setting = Setting(row["task"], row["regime"], float(row["lr"]), int(row["staleness"]))
    runs = study.runs(setting, row["method"])
    runs = runs[runs["control"] == row["control"]]
    about = (*describe(setting), row["method"] + (" (control)" if row["control"] else ""))
    scored = runs[(runs["status"] != "error") & runs["final_reward"].notna()]
    entries = [
        Entry(task_name(setting)),
        Entry(rate(setting.lr), sort=setting.lr),
        Entry(str(setting.lag), sort=setting.lag),
        Entry(row["method"] + ("*" if row["control"] else ""), tone="dim" if row["control"] else ""),
        Entry(str(int(row["seeds"])), sort=float(row["seeds"])),
    ]
    for name, how in (("final_reward", "last"), ("best_reward", "largest")):
        value = ledger.add(
            name,
            about,
            row[name],
            f"mean over seeds of the {how} sampled_reward among a cell's evaluations",
            scored["key"],
            table="evals",
            columns=("step", "sampled_reward"),
        )
        entries.append(Entry(value.text, value, row[name]))
        width = row[f"{name}_high"] - row[f"{name}_low"]
        entries.append(Entry(interval(row[f"{name}_low"], row[f"{name}_high"]), sort=width))
    ess = ledger.add(
        "median_ess",
        about,
        row["median_ess"],
        "median over seeds of the median over updates of ess_ratio",
        scored["key"],
        table="steps",
        columns=("ess_ratio",),
    )
    count, judged = int(runs["failed"].sum()), int((~runs["event"].isin(UNDECIDED)).sum())
    failed = ledger.add(
        "failed",
        about,
        count,
        "number of cells that collapsed (with or without rebound) or ended as nan, by the collapse rule on evaluations",
        runs["key"],
        table="cells",
        columns=("event", "onset"),
        text=f"{count}/{judged}" if judged else MISSING,
    )
    entries.append(Entry(ess.text, ess, row["median_ess"]))
    entries.append(Entry(failed.text, failed, failed.value, "bad" if count else ""))
    odd = [f"{int(row[name])} {name}" for name in ODD_ENDS if row[name]]
    entries.append(Entry(", ".join(odd), sort=float(len(odd)), tone="bad" if odd else ""))
    return entries


def task_name(setting: Setting) -> str:
    """The task, with the regime where it is not the usual one."""
    return setting.task if setting.regime == SYNCHRONOUS else f"{setting.task} ({setting.regime})"


def describe(setting: Setting) -> tuple[str, str, str, str]:
    """A setting in words, most general first."""
    return (setting.task, setting.regime, f"lr {rate(setting.lr)}", f"lag {setting.lag}")

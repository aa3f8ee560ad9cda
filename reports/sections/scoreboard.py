"""The scoreboard as a table of the report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.analysis.collapse.sentences import OUTCOMES
from vcpo_bench.analysis.comparison.scoreboard import ODD_ENDS
from vcpo_bench.analysis.final_reward import LAST
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.records import SYNCHRONOUS
from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import MISSING, fixed, interval, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import ComparisonSetting, Curves, Series, Study

_HEADINGS = [
    "task", "lr", "lag", "method", "seeds", "final reward", "95%", "best", "95%", "ESS", "collapsed", "not completed",
]  # fmt: skip


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One row per task, regime, learning rate, lag and method."""
    rows = [_row(study, ledger, row) for _, row in study.board.iterrows()]
    caption = (
        "Reward on held-out prompts: mean of the last three evaluations (final), and of the best one, which is the "
        f"maximum of noisy values and therefore optimistic. Means over seeds; 95% Student-t intervals from {ENOUGH} "
        "seeds on. "
        "ESS: median raw ratio over the updates before a collapse. Collapsed: collapse, collapse with rebound or "
        "nan by the collapse rule, of the cells it applies to. Controls are marked with an asterisk."
    )
    shown = [place for place in range(len(_HEADINGS)) if any(row[place].text for row in rows)]
    numeric = frozenset(at for at, place in enumerate(shown) if _HEADINGS[place] not in ("task", "method"))
    headings, rows = [_HEADINGS[place] for place in shown], [[row[place] for place in shown] for row in rows]
    outcomes = statements(study, ledger, "collapse", OUTCOMES)
    return [
        Table("scoreboard", caption, headings, rows, numeric=numeric, settings=5),
        *outcomes,
    ]


@dataclass(frozen=True)
class _Line:
    """One row of the table: what it is about, and its cells, of which `scored` have rewards."""

    row: pd.Series
    about: tuple[str, ...]
    runs: pd.DataFrame
    scored: pd.DataFrame


def _row(study: Study, ledger: Ledger, row: pd.Series) -> list[TableCell]:
    setting = ComparisonSetting(row["task"], row["regime"], float(row["lr"]), int(row["staleness"]))
    runs = study.runs(setting, row["method"])
    runs = runs[runs["control"] == row["control"]]
    about = (*describe(setting), row["method"] + (" (control)" if row["control"] else ""))
    line = _Line(row, about, runs, runs[(runs["status"] != "error") & runs["final_reward"].notna()])
    odd = [f"{int(row[name])} {name}" for name in ODD_ENDS if row[name]]
    return [
        *_names(setting, row),
        *_rewards(study, ledger, line),
        _ess(ledger, line),
        _failed(ledger, line),
        TableCell(", ".join(odd), sort=float(len(odd)), tone="bad" if odd else ""),
    ]


def _names(setting: ComparisonSetting, row: pd.Series) -> list[TableCell]:
    return [
        TableCell(task_name(setting)),
        TableCell(rate(setting.lr), sort=setting.lr),
        TableCell(str(setting.lag), sort=setting.lag),
        TableCell(row["method"] + ("*" if row["control"] else ""), tone="dim" if row["control"] else ""),
        TableCell(str(int(row["seeds"])), sort=float(row["seeds"])),
    ]


def _rewards(study: Study, ledger: Ledger, line: _Line) -> list[TableCell]:
    """Final and best reward with their intervals."""
    entries = []
    for name, how, choose in (("final_reward", "mean of the last three", _last), ("best_reward", "largest", _largest)):
        value = ledger.add(
            name,
            line.about,
            line.row[name],
            f"mean over seeds of the {how} sampled_reward among a cell's evaluations",
            line.scored["key"],
            table="evals",
            columns=("step", "sampled_reward"),
            rows=[int(one) for key in line.scored["key"] for one in choose(study.evals[key])],
            text=fixed(line.row[name]),
        )
        low, high = line.row[f"{name}_low"], line.row[f"{name}_high"]
        entries += [TableCell(value.text, value, value.value), TableCell(interval(low, high), sort=high - low)]
    return entries


def _last(evals: Curves) -> Series:
    """Row numbers, in the table of evaluations, of those that are the final reward of a cell."""
    return evals["row"][-LAST:]


def _largest(evals: Curves) -> Series:
    """Row number of the first of the largest rewards of a cell."""
    return evals["row"][[np.nanargmax(evals["sampled_reward"])]]


def _ess(ledger: Ledger, line: _Line) -> TableCell:
    ess = ledger.add(
        "median_ess",
        line.about,
        line.row["median_ess"],
        "median over seeds of the median of ess_ratio over the updates before the onset of a collapse",
        line.scored["key"],
        table="steps",
        columns=("ess_ratio",),
    )
    return TableCell(ess.text, ess, ess.value)


def _failed(ledger: Ledger, line: _Line) -> TableCell:
    """How many failed, of the cells that the collapse rule could judge; the rows are those of all cells."""
    judged = line.runs[~line.runs["event"].isin(UNDECIDED)]
    count = int(judged["collapsed"].sum())
    failed = ledger.add(
        "collapsed",
        line.about,
        count,
        "number of cells that collapsed (with or without rebound) or ended as nan, by the collapse rule on evaluations",
        line.runs["key"],
        table="cells",
        columns=("event", "onset"),
        text=f"{count}/{len(judged)}" if len(judged) else MISSING,
    )
    return TableCell(failed.text, failed, failed.value, "bad" if count else "")


def task_name(setting: ComparisonSetting) -> str:
    """The task, with the regime where it is not the usual one."""
    return setting.task if setting.regime == SYNCHRONOUS else f"{setting.task} ({setting.regime})"


def describe(setting: ComparisonSetting) -> tuple[str, str, str, str]:
    """A setting in words, most general first."""
    return (setting.task, setting.regime, f"lr {rate(setting.lr)}", f"lag {setting.lag}")


SECTIONS = (ReportSection("scoreboard", "Scoreboard", 20, blocks, folded=False),)

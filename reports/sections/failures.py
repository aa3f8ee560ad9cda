"""Cells that failed by the collapse rule, did not complete or cannot be read, and damaged files."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.analysis.caveats import DAMAGE
from vcpo_bench.analysis.comparison.coverage import COMPLETE
from vcpo_bench.analysis.recorded_tables import Problem
from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import MISSING, fixed, rate, whole
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.cell_pages import anchor, why
from vcpo_bench.reports.study import Study

_SETTINGS = ["method", "task", "lag", "lr", "seed"]
_HEADINGS = [*_SETTINGS, "ended as", "updates", "reason"]
_CAPTION = (
    "Cells that did not complete. A cell that ended as nan is a result; one that ended in an error is not, nor is one "
    "that is damaged."
)
_AT_ONSET = [*_SETTINGS, "verdict", "onset", "lag at onset"]
_ONSETS = (
    "Cells that collapsed by the collapse rule. Lag at onset is the mean realized lag, in updates, of the last update "
    "before the evaluation that first found the run down: early in a run, data is younger than the nominal lag."
)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """The cells with the reason, then the files; or that there are none."""
    return [
        *statements(study, ledger, "coverage", COMPLETE),
        *_collapsed(study),
        *_incomplete(study),
        *statements(study, ledger, "caveats", DAMAGE),
    ]


def _collapsed(study: Study) -> list[Table]:
    failed = study.cells[study.cells["collapsed"].astype(bool)].sort_values(
        ["task", "staleness", "method", "lr", "seed"]
    )
    rows = [
        [
            *_settings(cell),
            TableCell(str(cell["event"])),
            TableCell(whole(cell["onset"])),
            TableCell(fixed(cell["lag_at_onset"], 1)),
        ]
        for _, cell in failed.iterrows()
    ]
    table = Table("onsets", _ONSETS, _AT_ONSET, rows, numeric=frozenset({2, 3, 4, 6, 7}), settings=len(_SETTINGS))
    return [table] if rows else []


def _incomplete(study: Study) -> list[Table]:
    cells = study.cells[study.cells["status"] != "completed"]
    rows = [
        [
            *_settings(cell),
            TableCell(str(cell["status"]), tone="bad" if cell["status"] == "error" else ""),
            TableCell(whole(cell["steps_done"])),
            TableCell(why(cell)),
        ]
        for _, cell in cells.iterrows()
    ]
    rows += [_set_aside(problem) for problem in _unread(study)]
    table = Table("incomplete", _CAPTION, _HEADINGS, rows, numeric=frozenset({2, 3, 4, 6}), settings=len(_SETTINGS))
    return [table] if rows else []


def _settings(cell: pd.Series) -> list[TableCell]:
    """What tells a cell apart, under `_SETTINGS`."""
    return [
        TableCell(str(cell["method"]), link=anchor(str(cell["key"]))),
        TableCell(str(cell["task"])),
        TableCell(str(cell["staleness"]), sort=float(cell["staleness"])),
        TableCell(rate(cell["lr"]), sort=float(cell["lr"])),
        TableCell(str(cell["seed"]), sort=float(cell["seed"])),
    ]


def _unread(study: Study) -> list[Problem]:
    """Damage that leaves a cell out of every other table."""
    known = set(study.cells["key"])
    return [one for one in study.results.problems if one.key and one.key not in known]


def _set_aside(problem: Problem) -> list[TableCell]:
    """A cell whose own file cannot be read: nothing is known of it but its key."""
    unknown = [TableCell(MISSING) for _ in _SETTINGS[1:]]
    return [
        TableCell(problem.key),
        *unknown,
        TableCell("damaged", tone="bad"),
        TableCell(MISSING),
        TableCell(problem.what),
    ]


SECTIONS = (ReportSection("failures", "Collapses and errors", 110, blocks, folded=False),)

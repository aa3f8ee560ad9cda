"""What policies did with their environments: turns, calls, and what went wrong with them."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.records.step_facts import EPISODE_FACTS
from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import fixed, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.study import Study

_COLUMNS = tuple(f"episode_{fact}" for fact in EPISODE_FACTS)
_HEADINGS = ("turns", "calls", "malformed calls", "void turns", "observed tokens", "out of tokens", "out of turns")
_SETTING = ["task", "regime", "lr", "staleness", "method"]
_PARTS = 8
_CAPTION = (
    "Means per trajectory over the first and the last eighth of the updates of all seeds: turns of the policy, calls "
    "that were carried out and calls that could not be read, turns that were neither call nor answer, and tokens that "
    "the environment inserted; and the shares of trajectories that ran out of tokens or of turns."
)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """A table with the first and the last updates of each setting; none where no task has an environment."""
    if study.results.step_columns(_COLUMNS[0])[_COLUMNS[0]].isna().all():
        return []
    steps = study.results.step_columns(*_COLUMNS).dropna(subset=_COLUMNS[:1])
    cells = study.cells[study.cells["key"].isin(steps["key"])]
    rows = []
    for setting, runs in cells.groupby(_SETTING, sort=True):
        taken = steps[steps["key"].isin(runs["key"])]
        rows += [_row(ledger, setting, when, _eighth(taken, when)) for when in ("first", "last")]
    headings = ["task", "regime", "lr", "lag", "method", "updates", *_HEADINGS]
    return [Table("turns", _CAPTION, headings, rows, numeric=frozenset({2, 3, *range(6, 13)}), settings=6)]


def _eighth(steps: pd.DataFrame, when: str) -> pd.DataFrame:
    """The first or the last eighth of the updates of every run, at least one of each."""
    place, size = steps.groupby("key").cumcount(), steps.groupby("key")["step"].transform("size")
    count = (size // _PARTS).clip(lower=1)
    return steps[place < count] if when == "first" else steps[place >= size - count]


def _row(ledger: Ledger, setting: tuple[object, ...], when: str, steps: pd.DataFrame) -> list[TableCell]:
    task, regime, lr, lag, method = setting
    named = [str(task), str(regime), rate(lr), str(lag), str(method), when]
    entries = []
    for column in _COLUMNS:
        value = float(steps[column].mean())
        known = ledger.add(
            column,
            [*named[:2], f"lr {named[2]}", f"lag {lag}", named[4], f"{when} updates"],
            value,
            f"mean over the {when} eighth of the updates of every seed",
            sorted(set(steps["key"])),
            table="steps",
            columns=(column,),
            rows=steps.index.tolist(),
            text=fixed(value),
        )
        entries.append(TableCell(known.text, known, sort=value))
    return [*(TableCell(text) for text in named), *entries]


SECTIONS = (ReportSection("turns", "Turns and calls", 210, blocks),)

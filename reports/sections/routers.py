"""Mixtures of experts: how many router decisions differ between sampler and learner, by cause."""

from __future__ import annotations

import pandas as pd

from vcpo_bench.records.steps.routing import COLUMNS
from vcpo_bench.reports.document import Block, Table, TableCell
from vcpo_bench.reports.formatting import fixed, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.study import Study

PLACE = Place("Routers", 220)

_COLUMNS = (*(one.name for one in COLUMNS), "kl_mu_theta_k3")
_HEADINGS = ("changed", "by the engine", "by lag", "tokens rerouted", "D_KL(μ‖θ)")
_SETTING = ["task", "regime", "lr", "replay", "staleness", "method"]
_CAPTION = (
    "Means over the updates of all seeds. Shares of router decisions in which sampler and learner chose other experts: "
    "in all; between the sampler and the learner of the same moment (the engine's part); between the learner then and "
    "now (the part of lag). Two changes of one decision can undo each other, so the parts may add up to more than all. "
    "The learner's choice is the one without replay. KL is that of the policy that was trained, with replay."
)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """One row per setting; none where nothing is routed."""
    if study.results.step_columns(_COLUMNS[0])[_COLUMNS[0]].isna().all():
        return []
    steps = study.results.step_columns(*_COLUMNS).dropna(subset=_COLUMNS[:1])
    cells = study.cells[study.cells["key"].isin(steps["key"])]
    if "replay" not in cells:  # tables from elsewhere may lack settings that are all at their defaults
        cells = cells.assign(replay="off")
    rows = [
        _row(ledger, setting, steps[steps["key"].isin(runs["key"])])
        for setting, runs in cells.groupby(_SETTING, sort=True)
    ]
    headings = ["task", "regime", "lr", "replay", "lag", "method", *_HEADINGS]
    return [Table("routers", _CAPTION, headings, rows, numeric=frozenset({2, 4, *range(6, 11)}), settings=6)]


def _row(ledger: Ledger, setting: tuple[object, ...], steps: pd.DataFrame) -> list[TableCell]:
    task, regime, lr, replay, lag, method = setting
    named = [str(task), str(regime), rate(lr), str(replay), str(lag), str(method)]
    entries = []
    for column in _COLUMNS:
        value = float(steps[column].mean())
        known = ledger.add(
            column,
            [*named[:2], f"lr {named[2]}", f"replay {named[3]}", f"lag {lag}", named[5]],
            value,
            "mean over the updates of every seed",
            sorted(set(steps["key"])),
            table="steps",
            columns=(column,),
            rows=steps.index.tolist(),
            text=fixed(value, 4),
        )
        entries.append(TableCell(known.text, known, sort=value))
    return [*(TableCell(text) for text in named), *entries]

"""Figures as blocks of a report: one of each task and regime, or the curves of recorded quantities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vcpo_bench.reports.document import Picture
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.curves import QUANTITIES, Quantity, trajectories
from vcpo_bench.reports.plots.sheet import figure_name
from vcpo_bench.reports.study import Study

_QUANTITY = {quantity.name: quantity for quantity in QUANTITIES}
_Scene = Callable[[Study, Sheet, str, str], Plot | None]


def scenes(study: Study, what: str, draw: _Scene, wide: bool = False) -> list[Picture]:
    """A picture of each task and regime, named for what it shows and for them."""
    return [
        Picture(figure_name(what, task, regime), partial(_on_sheet, draw, study, task, regime), wide)
        for task, regime in study.scenes()
    ]


def curves(study: Study, *names: str) -> list[Picture]:
    """The curves of these quantities (`plots.curves.QUANTITIES`), a picture of each task and regime."""
    return [picture for name in names for picture in scenes(study, name, partial(_curves, _QUANTITY[name]), wide=True)]


def _on_sheet(draw: _Scene, study: Study, task: str, regime: str, sheet: Sheet) -> Plot | None:
    return draw(study, sheet, task, regime)


def _curves(quantity: Quantity, study: Study, sheet: Sheet, task: str, regime: str) -> Plot | None:
    return trajectories(study, sheet, quantity, task, regime)

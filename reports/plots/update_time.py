"""Where the time of an update goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.comparison.quiet_updates import SLOWER, quiet_updates
from vcpo_bench.analysis.series import cell_rows
from vcpo_bench.analysis.wording import listed
from vcpo_bench.records.steps import DIAGNOSTICS
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.caption import several
from vcpo_bench.reports.plots.method_style import INK, OKABE_ITO
from vcpo_bench.reports.plots.sheet import folded, line_count, panel_grid
from vcpo_bench.reports.study import Study

_PHASES = tuple(DIAGNOSTICS[name] for name in ("seconds_sample", "seconds_score", "seconds_update", "seconds_record"))
_COLORS = ("#F0E442", OKABE_ITO["sky"], OKABE_ITO["blue"], INK)
"""Of the palette of Okabe and Ito, from light to dark: gray print keeps them apart."""

_FEW = 0.01
"""A smaller share of updates that are left out is not worth a sentence."""


def phases(study: Study, sheet: Sheet) -> Plot | None:
    """Median milliseconds of each phase of an update, a bar per method; None when no time was recorded."""
    columns = [one.name for one in _PHASES]
    steps = study.results.step_columns(*columns)
    quiet = quiet_updates(study.results)
    steps = steps[quiet]
    cells = study.results.cells
    of_run = steps[columns].groupby(cell_rows(steps, cells)).median()  # as the table of costs has it
    method_of_run = cells["method"].to_numpy(dtype=object)[of_run.index]
    runs = pd.Series(method_of_run).value_counts()
    medians = 1e3 * of_run.groupby(method_of_run).median()
    medians = medians[medians.sum(axis=1) > 0]
    if medians.empty:
        return None
    methods = [name for name in study.methods if name in medians.index]
    names = folded(methods, 0.4 * sheet.width, sheet.font_size)
    low = replace(sheet, panel_height=(0.4 + 0.11 * len(methods) * line_count(names)) * sheet.panel_height)
    figure, (axes,) = panel_grid(low, 1, 1)
    places = np.arange(len(methods), dtype=np.float64)
    left = np.zeros(len(methods))
    for one, color in zip(_PHASES, _COLORS, strict=True):
        width = medians.loc[methods, one.name].to_numpy(np.float64)
        axes.barh(
            places, width, left=left, height=0.7, color=color, edgecolor=INK, linewidth=0.4, label=one.axis_label()
        )
        left = left + width
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("milliseconds per update (median)")
    figure.legend(loc="outside upper center", ncols=4 if sheet.width > 4 else 2)
    title = "Where does the time of an update go?"
    caption = (
        f"{title} Median over {several(runs[methods], 'run')} per method of each run's median, without an interval. "
        f"{_left_out(quiet, [name for name in study.methods if name not in methods])}"
    ).strip()
    lines = [Line(0, one.axis_label(), places, medians.loc[methods, one.name].to_numpy(np.float64)) for one in _PHASES]
    return Plot("phases", title, caption, figure, [], lines, "method_index", "milliseconds", [", ".join(methods)])


def _left_out(quiet: NDArray[np.bool_], missing: list[str]) -> str:
    """What the caption says of updates that are not counted, and of methods that have no others."""
    if quiet.mean() > 1 - _FEW and not missing:
        return ""
    said = (
        f"{100 * (1 - quiet.mean()):.0f}% of the updates are left out: the machine was busy with other work, since "
        f"sampling, the same work for every method, took more than {SLOWER:g} times as long as at best."
    )
    return f"{said} So {listed(missing)} cannot be shown." if missing else said

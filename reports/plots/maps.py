"""Two maps: ESS of every cell over its updates with failures marked, and the share of failed runs by lag and rate."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from numpy.typing import NDArray

from vcpo_bench.analysis.collapse.rule import UNDECIDED
from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.formatting import rate
from vcpo_bench.reports.plots.caption import several
from vcpo_bench.reports.plots.method_style import INK
from vcpo_bench.reports.plots.sheet import figure_name, folded, label_edges, line_count, panel_grid, titled_columns
from vcpo_bench.reports.plots.ticks import PlainTicks, over_updates
from vcpo_bench.reports.study import Study, bin_edges, binned_runs

COLORS = "cividis"
_BLOCK_INCHES = 0.13
_LEAST_BLOCK_INCHES = 0.09
"""Of a block whose name is still readable, which is then set in 5.5 points."""
_AROUND_INCHES = 0.8


def ess_map(study: Study, sheet: Sheet, task: str, regime: str) -> Plot | None:
    """ESS ratio over updates, a row per cell sorted by lag, method and rate; a red mark is the onset of a failure.

    None without an ESS, and where the sheet is too low for the names of the blocks.
    """
    cells = study.cells[(study.cells["task"] == task) & (study.cells["regime"] == regime)]
    cells = cells.sort_values(["staleness", "method", "lr", "seed"], kind="stable")
    cells = cells[cells["key"].isin(list(study.steps))].reset_index(drop=True)
    if cells.empty:
        return None
    last = int(max(study.steps[key]["step"].max() for key in cells["key"]))
    edges = bin_edges(last)
    runs = [study.steps[str(key)] for key in cells["key"]]
    image = binned_runs([(rows["step"], rows["ess_ratio"]) for rows in runs], edges)
    if not (image > 0).any():
        return None
    sizes = np.asarray(cells.groupby(["staleness", "method"], sort=False).size(), dtype=np.int64)
    blocks = folded(_block_names(cells), 0.4 * sheet.width, sheet.font_size)
    least = _AROUND_INCHES + _BLOCK_INCHES * len(sizes) * line_count(blocks)
    height = max(min(3.2 * sheet.panel_height, 1.0 + 0.07 * len(cells)), least)
    room = (min(height, sheet.most_height) - _AROUND_INCHES) / len(sizes) / line_count(blocks)
    if room < _LEAST_BLOCK_INCHES:
        return None
    tall = Sheet(sheet.width, height, sheet.font_size, sheet.legend)
    figure, (axes,) = panel_grid(tall, 1, 1)
    axes.grid(visible=False)
    norm = LogNorm(min(max(float(np.nanmin(image[image > 0])), 1e-3), 0.05), 1.0)
    extent, even = (0.0, last + 1.0, float(len(sizes)), 0.0), image[_even_rows(sizes)]
    shown = axes.imshow(even, aspect="auto", interpolation="nearest", extent=extent, cmap=COLORS, norm=norm)
    bar = figure.colorbar(shown, ax=axes, pad=0.01, aspect=40, fraction=0.03, format="%g", ticks=PlainTicks())
    bar.set_label("ESS ratio")
    bar.ax.minorticks_off()
    failed = cells[cells["onset"].notna()]
    middles = np.concatenate([block + (np.arange(size) + 0.5) / size for block, size in enumerate(sizes)])[failed.index]
    axes.scatter(failed["onset"], middles, marker="|", s=26, color="white", linewidth=3.6)
    axes.scatter(failed["onset"], middles, marker="|", s=26, color="#CC0000", linewidth=1.8)
    for block, name in enumerate(blocks):
        axes.axhline(block, color="white", linewidth=1.6 if name.startswith("lag ") else 0.5)
    axes.set_yticks(np.arange(len(blocks)) + 0.5, blocks)
    axes.tick_params(axis="y", length=0)
    if room < _BLOCK_INCHES:
        axes.tick_params(axis="y", labelsize=0.85 * 72 * room)
    over_updates(axes)
    seeds = several(cells.groupby(["staleness", "method", "lr"]).size())
    title = "Does low ESS precede collapse?"
    caption = (
        f"{title} Task {task}, regime {regime}: ESS ratio of each of {several([len(cells)], 'run')} (rows, sorted by "
        f"lag, method, learning rate and seed; {seeds} each; every block has the same height), averaged within up to "
        "40 bins of updates; no interval, since every run is shown. A red mark is the onset of a collapse, rebound "
        "or nan by the collapse rule."
    )
    centers = (edges[:-1] + edges[1:]) / 2
    names = [f"lag {c.staleness}, {c.method}, lr {rate(c.lr)}, seed {c.seed}" for c in cells.itertuples()]
    lines = [Line(0, name, np.floor(centers), values) for name, values in zip(names, image, strict=True)]
    name = figure_name("ess-map", task, regime)
    return Plot(name, title, caption, figure, [], lines, "update", "ess_ratio", [task], blocks=sizes.tolist())


def _even_rows(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells by row of an image in which every lag-and-method block has the same height, so that its name fits."""
    height, starts = 4 * int(sizes.max()), np.cumsum(sizes) - sizes
    return np.concatenate(
        [start + np.arange(height) * size // height for start, size in zip(starts, sizes, strict=True)]
    )


def _block_names(cells: pd.DataFrame) -> list[str]:
    """The method of each lag-and-method block, with its lag in the first block of one."""
    blocks = cells[["staleness", "method"]].drop_duplicates()
    first = ~blocks["staleness"].duplicated()
    return [f"lag {lag}, {name}" if new else name for (lag, name), new in zip(blocks.to_numpy(), first, strict=True)]


def stability_map(study: Study, sheet: Sheet, task: str, regime: str) -> Plot | None:
    """Share of failed runs by lag and learning rate, one panel per method; None without at least two places."""
    cells = study.cells[(study.cells["task"] == task) & (study.cells["regime"] == regime)]
    cells = cells[~cells["event"].isin(UNDECIDED)]
    lags, rates = sorted(cells["staleness"].unique()), sorted(cells["lr"].unique())
    if len(lags) * len(rates) < 2:
        return None
    methods = [name for name in study.methods if (cells["method"] == name).any()]
    columns = titled_columns(sheet, methods)
    low = Sheet(sheet.width, 0.75 + 0.28 * len(rates), sheet.font_size, sheet.legend)
    figure, axes = panel_grid(low, len(methods), columns)
    lines = []
    for index, (method, panel) in enumerate(zip(methods, axes, strict=True)):
        runs = cells[cells["method"] == method]
        image = np.full((len(rates), len(lags)), np.nan)
        panel.grid(visible=False)
        for y, x in np.ndindex(image.shape):
            here = runs.loc[(runs["lr"] == rates[y]) & (runs["staleness"] == lags[x]), "collapsed"]
            if len(here):
                image[y, x] = here.mean()
                color = "white" if image[y, x] < 0.5 else INK
                panel.text(x, y, f"{here.sum()}/{len(here)}", ha="center", va="center", color=color)
        panel.imshow(image, aspect="auto", cmap=COLORS, vmin=0.0, vmax=1.0, origin="lower")
        panel.set_xticks(range(len(lags)), [str(lag) for lag in lags])
        panel.set_yticks(range(len(rates)), [rate(lr) for lr in rates])
        panel.set_title(method)
        panel.tick_params(length=0)
        x_values = np.array(lags, dtype=np.float64)
        lines += [Line(index, f"lr {rate(lr)}", x_values, image[y]) for y, lr in enumerate(rates)]
    label_edges(axes, columns, "lag", "lr")
    seeds = several(cells.groupby(["staleness", "method", "lr"]).size())
    title = "Where is each method stable?"
    caption = (
        f"{title} Task {task}, regime {regime}: collapsed of all runs by the collapse rule (collapse, collapse with "
        f"rebound, nan), by lag and learning rate: {seeds} each; counts, without an interval. Dark: none collapsed; "
        "light: all collapsed; empty: not run."
    )
    name = figure_name("stability", task, regime)
    return Plot(name, title, caption, figure, [], lines, "lag", "collapsed_share", methods, places=True)

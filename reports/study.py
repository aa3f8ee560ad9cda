"""What a report is made from: recorded results and the findings of `analysis`, computed once for all sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.results import Results, load_comparable
from vcpo_bench.analysis.series import in_order, spans
from vcpo_bench.reports.analyses import CURVES, find_source

Series = NDArray[np.float64]
Curves = dict[str, Series]
"""Columns of the rows of one cell, and `row`, their numbers in the table."""
_AT_ONCE = 64
"""Runs that are binned together: more would take memory, not less time."""
_Groups = Iterator[tuple[tuple[Any, ...], pd.DataFrame]]


class ComparisonSetting(NamedTuple):
    """What stays fixed within a comparison of methods: one panel of most figures."""

    task: str
    regime: str
    lr: float
    lag: int


@dataclass
class Study:
    """Recorded results with everything that is derived from them, computed when first used."""

    results: Results
    _findings: dict[str, Findings] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row per cell: `analysis.comparison.scoreboard.cell_summary`."""
        return self.findings("coverage").tables["cells"]

    @cached_property
    def board(self) -> pd.DataFrame:
        """`analysis.comparison.scoreboard.scoreboard`: one row per task, method, regime, lag and learning rate."""
        return scoreboard(self.results)

    def findings(self, analysis: str) -> Findings:
        """What an analysis found, by the name that `reports.analyses.find_source` knows."""
        if analysis not in self._findings:
            self._findings[analysis] = find_source(analysis).run(self.results)
        return self._findings[analysis]

    @cached_property
    def largest_kl(self) -> float:
        """The largest KL of an update; 1 where none is known."""
        every = [one["kl_mu_theta_k3"] for one in self.steps.values()]
        known = [float(found.max()) for one in every if (found := one[np.isfinite(one)]).size]
        return max([one for one in known if one > 0], default=1.0)

    def adopt(self, analysis: str, found: Findings) -> None:
        """Take what an analysis found from elsewhere instead of computing it."""
        self._findings[analysis] = found

    def table(self, name: str) -> pd.DataFrame:
        """The table that a number of a report names: `cells`, a recorded one such as `steps`, or `ANALYSIS.TABLE`."""
        analysis, dot, table = name.partition(".")
        if dot:
            return self.findings(analysis).tables[table]
        recorded: pd.DataFrame = self.cells if name == "cells" else getattr(self.results, name)
        return recorded

    @cached_property
    def methods(self) -> list[str]:
        """Method expressions: the compared ones by name, then those that occur as controls only."""
        compared = self.cells.groupby("method")["control"].all()
        return sorted(compared.index, key=lambda name: (bool(compared[name]), str(name)))

    @cached_property
    def settings(self) -> list[ComparisonSetting]:
        """Every (task, regime, learning rate, lag) with at least one cell, sorted."""
        columns = ["task", "regime", "lr", "staleness"]
        found = self.cells[columns].drop_duplicates().itertuples(index=False, name=None)
        return sorted(_setting(row) for row in found)

    def scenes(self) -> list[tuple[str, str]]:
        """Every (task, regime), sorted: one figure each where lags and learning rates are its panels."""
        return sorted({(setting.task, setting.regime) for setting in self.settings})

    @cached_property
    def _groups(self) -> dict[tuple[ComparisonSetting, str], pd.DataFrame]:
        columns = ["task", "regime", "lr", "staleness", "method"]
        groups = self.cells.groupby(columns, sort=True)
        return {(_setting(key), str(key[4])): rows for key, rows in cast("_Groups", groups)}

    def runs(self, setting: ComparisonSetting, method: str) -> pd.DataFrame:
        """The cells (seeds) of a method in a setting; empty when there are none."""
        return self._groups.get((setting, method), self.cells.iloc[:0])

    def groups(self) -> Iterator[tuple[ComparisonSetting, str, pd.DataFrame]]:
        """Every (setting, method, cells) there is."""
        for (setting, method), rows in self._groups.items():
            yield setting, method, rows

    @cached_property
    def steps(self) -> dict[str, Curves]:
        """Key of a cell to its updates, `step` and `CURVES`, in order of `step`; cells without any are absent."""
        return _by_cell(self.results.step_columns(*CURVES), CURVES)

    @cached_property
    def evals(self) -> dict[str, Curves]:
        """Key of a cell to its evaluations, `step` and `sampled_reward`, in order; cells without any are absent."""
        return _by_cell(self.results.evals, ("sampled_reward",))


def open_study(folders: str | Path | Iterable[str | Path], partial: bool = False) -> Study:
    """Read one results folder, or several that are pooled; with `partial` also cells that are still running.

    Raises:
        UsageError: No folder holds a cell, or their cells ran under different versions of the rules.
    """
    return Study(load_comparable(folders, include_partial=partial))


def _by_cell(table: pd.DataFrame, columns: tuple[str, ...]) -> dict[str, Curves]:
    ordered = in_order(table)
    whole = {name: ordered[name].to_numpy(np.float64) for name in ("step", *columns)}
    whole["row"] = ordered.index.to_numpy(np.float64)
    return {key: {name: values[rows] for name, values in whole.items()} for key, rows in spans(ordered)}


def _setting(row: tuple[Any, ...]) -> ComparisonSetting:
    return ComparisonSetting(str(row[0]), str(row[1]), float(row[2]), int(row[3]))


def binned(steps: Series, values: Series, edges: Series) -> Series:
    """Mean of the finite values within each bin of updates; NaN where there are none.

    Args:
        steps: Update of each value, shape [S].
        values: Shape [S].
        edges: Rising bin edges, shape [B + 1]; the last bin includes its right edge.

    Returns:
        Shape [B].
    """
    found: Series = binned_runs([(steps, values)], edges)[0]
    return found


def binned_runs(runs: Sequence[tuple[Series, Series]], edges: Series) -> Series:
    """`binned` for the steps and values of each run, some of them together because that is quicker: [N, B]."""
    parts = (runs[begin : begin + _AT_ONCE] for begin in range(0, len(runs), _AT_ONCE))
    return np.concatenate([_binned_together(part, edges) for part in parts])


def _binned_together(runs: Sequence[tuple[Series, Series]], edges: Series) -> Series:
    steps, values = (np.concatenate(one) for one in zip(*runs, strict=True))
    run = np.repeat(np.arange(len(runs)), [len(one) for one, _ in runs])
    finite = np.isfinite(values)
    shape = (len(runs), edges.size - 1)
    index = np.clip(np.searchsorted(edges, steps[finite], side="right") - 1, 0, shape[1] - 1) + shape[1] * run[finite]
    total = np.bincount(index, weights=values[finite], minlength=shape[0] * shape[1]).reshape(shape)
    count = np.bincount(index, minlength=shape[0] * shape[1]).reshape(shape)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@cache
def bin_edges(last_step: int, most: int = 40) -> Series:
    """Edges of at most `most` equal bins over the updates 0..last_step, each at least one update wide."""
    bins = max(min(most, last_step + 1), 1)
    edges = np.linspace(0, last_step + 1, bins + 1)
    edges.flags.writeable = False  # one array for all runs of that length
    return edges

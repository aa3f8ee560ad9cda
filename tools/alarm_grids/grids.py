"""The grids: studies that ship all updates, each by itself and all of them as one; only their first updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from configuration_study.panels import lagged
from configuration_study.tables import unpacked
from numpy.typing import NDArray

from vcpo_bench.analysis.calibrating.runs import Study, study_of_results
from vcpo_bench.analysis.calibrating.tune import Material, material
from vcpo_bench.analysis.prediction.alarm_outcomes import NEAREST
from vcpo_bench.analysis.prediction.panel import Flags, Panel
from vcpo_bench.analysis.prediction.twins import HISTORY
from vcpo_bench.analysis.results import Results
from vcpo_bench.analysis.series import in_order

GRIDS = ("calibration", "phase", "boundary", "step-rules", "every-method", "cures", "third-task", "gspo-bounds")
FAILING = ("calibration", "phase", "boundary", "step-rules", "third-task")
"""Those with at least 15 failures of at least 8 configurations within the horizon."""
HORIZON = 60
"""Updates that are read: the shortest grid has no more."""
RECORDED = 0.9
"""Share of the runs of every grid that record a signal which may be chosen."""
SHARED = ["task", "method", "regime", "lr"]
"""A run that agrees in these with a run of the held-out grid tunes nothing."""
Names = NDArray[np.object_]


@dataclass(frozen=True)
class Grid:
    """The runs of a grid, without copies.

    Attributes:
        study: Their first updates.
        history: Digest of the first updates of each run [N]: equal ones are one run under several names.
    """

    study: Study
    history: Names


def grids_in(results: Path) -> dict[str, Grid]:
    """The runs of every grid at a lag, whose archives are unpacked into a new folder.

    Raises:
        UsageError: The folder is there: whatever runs it holds would be read as those of the studies.
    """
    return {name: grid_of(lagged(runs), name) for name, runs in unpacked(results, GRIDS)}


def grid_of(results: Results, name: str) -> Grid:
    """The first updates of these runs, each history once."""
    study = cut(study_of_results(results, name))
    updates = in_order(results.step_columns(*HISTORY)).groupby("key", sort=False)
    digests = {key: _digest(own[list(HISTORY)].to_numpy(np.float64)[:HORIZON]) for key, own in updates}
    history = study.panel.runs["key"].map(digests)
    return only(Grid(study, history.to_numpy(dtype=object)), ~history.duplicated().to_numpy())


def _digest(history: NDArray[np.float64]) -> str:
    return sha256(np.ascontiguousarray(history).tobytes()).hexdigest()


def cut(study: Study) -> Study:
    """The first updates; a failure that is found too late for an alarm within them is no failure, and not healthy."""
    panel = study.panel
    seen = panel.onset <= HORIZON + NEAREST
    onset, found = (np.where(seen, moment, np.inf) for moment in (panel.onset, panel.found))
    values = {name: one[:, :HORIZON] for name, one in panel.values.items()}
    return replace(study, panel=replace(panel, values=values, onset=onset, found=found))


def only(grid: Grid, kept: Flags) -> Grid:
    """Some of the runs."""
    study, panel = grid.study, grid.study.panel
    part = Panel(
        panel.runs[kept].reset_index(drop=True),
        {name: one[kept] for name, one in panel.values.items()},
        *(getattr(panel, moment)[kept] for moment in ("onset", "found", "end")),
        stride=panel.stride,
    )
    own = {what: getattr(study, what)[kept] for what in ("configuration", "groups", "healthy", "dipped", "called")}
    return Grid(replace(study, panel=part, **own), grid.history[kept])


@dataclass(frozen=True)
class Pool:
    """All grids as one.

    Attributes:
        given: Their runs, in the order of the grids.
        grid: The grid of each run [N].
        history: Its digest [N].
        place: What a run shares with others that must not tune what is judged on it [N].
        start: Its task and seed [N].
    """

    given: Material
    grid: Names
    history: Names
    place: Names
    start: Names

    def tuning(self, held_out: str, names: Sequence[str], apart: bool = False) -> Flags:
        """The runs of these grids that may tune what is judged on the held-out one [N].

        Args:
            held_out: That grid.
            names: Grids that tune; the held-out one never does.
            apart: Nor do runs that share task and seed with one of it.
        """
        own = self.grid == held_out
        known = np.isin(self.place, self.place[own]) | np.isin(self.history, self.history[own])
        if apart:
            known |= np.isin(self.start, self.start[own])
        return np.isin(self.grid, [name for name in names if name != held_out]) & ~known


def pool(grids: Mapping[str, Grid]) -> Pool:
    """All grids as one, with the signals that all of them record."""
    parts = [one.study for one in grids.values()]
    panels = [one.panel for one in parts]
    runs = pd.concat([one.runs for one in panels], ignore_index=True)
    names = [name for name in panels[0].values if all(_recorded(one, name) for one in panels)]
    panel = Panel(
        runs,
        {name: np.vstack([one.values[name] for one in panels]) for name in names},
        *(np.concatenate([getattr(one, moment) for one in panels]) for moment in ("onset", "found", "end")),
        stride=max(one.stride for one in panels),
    )
    grid = np.repeat(np.array(list(grids), dtype=object), [len(one.runs) for one in panels])
    configurations = np.concatenate([one.configuration for one in parts])
    whole = Study(
        panel,
        pd.factorize(_joined(pd.DataFrame({"grid": grid, "own": configurations.astype(str)})))[0],
        grid,
        *(np.concatenate([getattr(one, what) for one in parts]) for what in ("healthy", "dipped", "called")),
        inputs={},
        reward=parts[0].reward,
        name="all grids",
    )
    history = np.concatenate([one.history for one in grids.values()])
    texts = runs.assign(lr=runs["lr"].map("{:.3e}".format))
    return Pool(material(whole), grid, history, _joined(texts[SHARED]), _joined(texts[["task", "seed"]].astype(str)))


def _recorded(panel: Panel, name: str) -> bool:
    return bool(np.isfinite(panel.values[name]).any(axis=1).mean() >= RECORDED)


def _joined(columns: pd.DataFrame) -> Names:
    return columns.agg(" ".join, axis=1).to_numpy(dtype=object)

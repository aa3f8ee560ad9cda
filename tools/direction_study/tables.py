"""The tables that ship with the direction study: its runs, their signals and the cosine of every update."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from boundary_study.areas import panels
from boundary_study.design import SEEDS, Place
from boundary_study.tables import COMPRESSED, FOLDER, RUN, Tables

from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.panel import WINDOW
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError

HOME = FOLDER.with_name("direction")
COSINES = "cosines"
"""In a results folder, the folder of what was measured beside the cells: a file per run."""
NAME, EARLIER = "update_direction", "one_update_earlier"


def places() -> dict[Place, float]:
    """The places of the boundary study that count, with their rungs."""
    return {place: float(panel.runs["rung"].iloc[0]) for place, panel in panels(Tables.read(FOLDER)).items()}


class Measured(NamedTuple):
    """What ships.

    Attributes:
        tables: Runs and signals, as of the boundary study.
        cosines: One row per run and update: `RUN`, `step`, `cosine`.
        machines: How many `runs` each `processor` and version of `torch` has made.
    """

    tables: Tables
    cosines: pd.DataFrame
    machines: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Measured:
        """What a folder has; empty tables where nothing has run yet."""
        path = folder / f"{COSINES}.csv.gz"
        if not path.exists():
            empty = pd.DataFrame(columns=[*RUN, "step", "cosine"])
            return cls(Tables.empty(), empty, pd.DataFrame(columns=["processor", "torch", "runs"]))
        return cls(Tables.read(folder), pd.read_csv(path), pd.read_csv(folder / "machines.csv"))

    @classmethod
    def of(cls, results: Path) -> Measured:
        """What a results folder has.

        Raises:
            UsageError: It has no cosines: the runs were not made by `run.py` of this study.
        """
        parts = sorted((results / COSINES).glob("*.csv"))
        if not parts:
            raise UsageError(f"{results} has no cosines; first run: python tools/direction_study/run.py {results}")
        cosines = pd.concat([pd.read_csv(part) for part in parts]).sort_values([*RUN, "step"])
        made = [
            {"processor": each["processor"], "torch": each["libraries"]["torch"]}
            for each in load(results).cells["provenance"]
        ]
        machines = pd.DataFrame(made).value_counts().rename("runs").reset_index()
        return cls(Tables.of(results), cosines.reset_index(drop=True), machines)

    def write(self, folder: Path) -> None:
        """Write all of it."""
        self.tables.write(folder)
        path = folder / f"{COSINES}.csv.gz"
        self.cosines.to_csv(path, index=False, float_format="%.5g", compression=COMPRESSED)
        self.machines.to_csv(folder / "machines.csv", index=False)

    @property
    def missing(self) -> str:
        """What the study lacks to be complete; empty: nothing."""
        heads = [(place.task, place.method, place.staleness, rung) for place, rung in places().items()]
        wanted = {(*head, seed) for head in heads for seed in SEEDS}
        ended = set(self.tables.runs[RUN].itertuples(index=False, name=None))
        if ended != wanted:
            return f"{len(ended & wanted)} of {len(wanted)} runs have ended"
        if len(self.machines) > 1:
            return "its runs are of several processors or versions of torch"
        updates = self.cosines.groupby(RUN)["step"].agg(lambda own: own.tolist() == list(range(len(own))))
        known = self.tables.signals.groupby(RUN)["update"].max()
        longest = self.cosines.groupby(RUN)["step"].max() + 1
        if not updates.all() or set(updates.index) != wanted or (longest.reindex(known.index) < known).any():
            return "not every update has one cosine"
        return ""

    def signals(self) -> pd.DataFrame:
        """The signals with two more: `NAME`, the trailing mean of the cosines, and `EARLIER`, that an update before."""
        scores = pd.concat([_trailing(own) for _, own in self.cosines.groupby(RUN, sort=False)])
        return self.tables.signals.merge(scores, on=[*RUN, "update"], how="left", validate="one_to_one")


def _trailing(own: pd.DataFrame) -> pd.DataFrame:
    """The trailing means of one run's cosines, in the order of its updates."""
    means = streamed_mean(own["cosine"].to_numpy(float)[None], WINDOW)[0]
    before = np.concatenate([[np.nan], means[:-1]])
    return own[RUN].assign(update=own["step"] + 1, **{NAME: means, EARLIER: before})

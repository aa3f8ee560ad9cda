"""The tables that ship with the direction study: its runs, their signals and the cosine of every update."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd
from boundary_study.areas import panels
from boundary_study.design import SEEDS, Place
from boundary_study.tables import COMPRESSED, FOLDER, RUN, Tables

from vcpo_bench.analysis.monitoring.trailing import streamed_mean
from vcpo_bench.analysis.prediction.panel import WINDOW
from vcpo_bench.errors import UsageError

HOME = FOLDER.with_name("direction")
COSINES = "cosines"
"""In a results folder, the folder of what was measured beside the cells."""
NAME = "update_direction"


def places() -> dict[Place, float]:
    """The places of the boundary study that count, with their rungs."""
    return {place: float(panel.runs["rung"].iloc[0]) for place, panel in panels(Tables.read(FOLDER)).items()}


class Measured(NamedTuple):
    """What ships.

    Attributes:
        tables: Runs and signals, as of the boundary study.
        cosines: One row per run and update: `RUN`, `step`, `cosine`.
    """

    tables: Tables
    cosines: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> Measured:
        """What a folder has; empty tables where nothing has run yet."""
        path = folder / f"{COSINES}.csv.gz"
        if not path.exists():
            return cls(Tables.empty(), pd.DataFrame(columns=[*RUN, "step", "cosine"]))
        return cls(Tables.read(folder), pd.read_csv(path))

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
        return cls(Tables.of(results), cosines.reset_index(drop=True))

    def write(self, folder: Path) -> None:
        """Write all three."""
        self.tables.write(folder)
        path = folder / f"{COSINES}.csv.gz"
        self.cosines.to_csv(path, index=False, float_format="%.5g", compression=COMPRESSED)

    @property
    def complete(self) -> bool:
        """Whether every run of the study has ended."""
        wanted = {
            (place.task, place.method, place.staleness, rung, seed)
            for place, rung in places().items()
            for seed in SEEDS
        }
        return wanted == set(self.tables.runs[RUN].itertuples(index=False, name=None))

    def signals(self) -> pd.DataFrame:
        """The signals with `NAME` among them: the trailing mean of its cosines, at the same updates."""
        scores = [_trailing(own) for _, own in self.cosines.groupby(RUN, sort=False)]
        return self.tables.signals.merge(pd.concat(scores), on=[*RUN, "update"], how="left")


def _trailing(own: pd.DataFrame) -> pd.DataFrame:
    """The trailing means of one run's cosines, in the order of its updates."""
    means = streamed_mean(own["cosine"].to_numpy(float)[None], WINDOW)[0]
    return own[RUN].assign(update=own["step"] + 1, **{NAME: means})

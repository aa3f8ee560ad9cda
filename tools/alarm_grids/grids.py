"""The grids: studies that ship all updates, each by itself and all of them as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from configuration_study.panels import lagged
from numpy.typing import NDArray
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.calibrating.runs import Study, study_of_results
from vcpo_bench.analysis.calibrating.tune import Material, material
from vcpo_bench.analysis.prediction.panel import Array, Flags, Panel
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
GRIDS = ("calibration", "phase", "boundary", "step-rules", "every-method", "cures", "third-task", "gspo-bounds")
FAILING = ("calibration", "phase", "boundary", "step-rules", "third-task")
"""Those with at least 15 failures of at least 8 configurations."""
ALIKE = ("calibration", "phase", "boundary", "third-task", "gspo-bounds")
"""Those with 128 trajectories per update."""
SHARED = ["task", "method", "regime", "lr"]
"""A run that agrees in these with a run of the held-out grid tunes nothing."""


def unpacked(results: Path) -> dict[str, Study]:
    """The runs of every grid at a lag, whose archives are unpacked into a new folder.

    Raises:
        UsageError: The folder is there: whatever runs it holds would be read as those of the studies.
    """
    if results.exists():
        raise UsageError(f"{results} exists; name a folder that does not: the archives are unpacked there")
    return dict(_each(results))


def _each(results: Path) -> Iterator[tuple[str, Study]]:
    for name in GRIDS:
        print(f"{name}: {unpack_folder(STUDIES / name / 'updates', results / name)} cells", flush=True)
        yield name, study_of_results(lagged(load(results / name)), name)


@dataclass(frozen=True)
class Pool:
    """All grids as one.

    Attributes:
        given: Their runs, in the order of the grids.
        grid: The grid of each run [N].
        place: What a run shares with others that must not tune what is judged on it [N].
    """

    given: Material
    grid: NDArray[np.object_]
    place: NDArray[np.object_]

    def tuning(self, held_out: str, names: Sequence[str]) -> Flags:
        """The runs of these grids that may tune what is judged on the held-out one [N]."""
        known = np.isin(self.place, self.place[self.grid == held_out])
        return np.isin(self.grid, [name for name in names if name != held_out]) & ~known


def pool(studies: Mapping[str, Study]) -> Pool:
    """All grids as one."""
    parts = list(studies.values())
    panels = [one.panel for one in parts]
    runs = pd.concat([one.runs for one in panels], ignore_index=True)
    longest = max(one.length for one in panels)
    names = [name for name in panels[0].values if all(name in one.values for one in panels)]
    panel = Panel(
        runs,
        {name: np.vstack([_padded(one.values[name], longest) for one in panels]) for name in names},
        *(np.concatenate([getattr(one, moment) for one in panels]) for moment in ("onset", "found", "end")),
        stride=max(one.stride for one in panels),
    )
    grid = np.repeat(np.array(list(studies), dtype=object), [len(one.runs) for one in panels])
    whole = Study(
        panel,
        pd.factorize(pd.Series(grid) + " " + np.concatenate([one.configuration for one in parts]).astype(str))[0],
        grid,
        *(np.concatenate([getattr(one, what) for one in parts]) for what in ("healthy", "dipped", "called")),
        inputs={},
        reward=parts[0].reward,
        name="all grids",
    )
    place = runs[SHARED].assign(lr=runs["lr"].map("{:.3e}".format)).agg(" ".join, axis=1).to_numpy(dtype=object)
    return Pool(material(whole), grid, place)


def _padded(values: Array, length: int) -> Array:
    return np.pad(values, ((0, 0), (0, length - values.shape[1])), constant_values=np.nan)

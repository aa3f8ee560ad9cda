"""Many runs of one folder, each diagnosed, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.diagnose import diagnose
from vcpo_bench.analysis.diagnosis.diagnosis import VERDICTS, Diagnosis
from vcpo_bench.analysis.logs.errors import SeveralRunsError
from vcpo_bench.analysis.logs.run import LoggedRun
from vcpo_bench.errors import VcpoBenchError


@dataclass(frozen=True)
class IndexedRun:
    """A row of the index.

    Attributes:
        path: Of the run.
        found: Its diagnosis; None where it could not be read.
        problem: Why not; else empty.
    """

    path: Path
    found: Diagnosis | None
    problem: str = ""

    def name(self, root: Path) -> str:
        """The path below the folder that was asked for."""
        return str(self.path.relative_to(root)) if self.path.is_relative_to(root) else str(self.path)

    @property
    def first_cause(self) -> str:
        """Name of the first probable cause; empty without one."""
        causes = self.found.causes if self.found is not None else ()
        return next((one.name for one in causes if one.standing == "probable"), "")

    @property
    def against_baseline(self) -> str:
        """The first signal that leaves the reference run; empty without one."""
        return self.found.baseline[0] if self.found is not None and self.found.baseline else ""

    @property
    def curve(self) -> NDArray[np.float64]:
        """The finite values of the reward that was judged, shape [n]; empty where none was."""
        if self.found is None:
            return np.empty(0)
        run, column = self.found.run, self.found.outcome.column
        series = run.series.get(column if column in ("eval_reward", "") else "reward")
        return np.empty(0) if series is None else series.finite[1]


def index_runs(
    paths: Sequence[Path],
    read: Callable[[Path], LoggedRun],
    baseline: LoggedRun | None = None,
    calibration: str | Path | None = None,
) -> list[IndexedRun]:
    """Diagnose every run: by verdict, the worst first, then by path; those that cannot be read last.

    Args:
        paths: Of runs; a folder that holds several stands for all of them.
        read: Reads one.
        baseline: As for `diagnose`.
        calibration: As for `diagnose`.
    """
    rows = [_row(path, run, baseline, calibration) for path, run in _read_all(paths, read)]
    return sorted(rows, key=lambda row: (_rank(row), str(row.path)))


def _read_all(paths: Sequence[Path], read: Callable[[Path], LoggedRun]) -> Iterator[tuple[Path, LoggedRun | str]]:
    for path in paths:
        try:
            yield path, read(path)
        except SeveralRunsError as several:
            yield from _read_all(several.runs, read)
        except (VcpoBenchError, OSError) as error:
            yield path, str(error)


def _row(path: Path, run: LoggedRun | str, baseline: LoggedRun | None, calibration: str | Path | None) -> IndexedRun:
    if isinstance(run, str):
        return IndexedRun(path, None, run)
    return IndexedRun(path, diagnose(run, baseline, calibration))


def _rank(row: IndexedRun) -> int:
    return VERDICTS.index(row.found.verdict) if row.found is not None else len(VERDICTS)

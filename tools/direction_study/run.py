"""The direction study: `python tools/direction_study/run.py RESULTS [--jobs 1] [--stack 16]`.

Trains the main runs of the boundary study's places that count once more, and measures the cosine of every update.
RESULTS becomes a results folder; a file per run in its `cosines` has what was measured. Stopped at any time, the same
command goes on; a stack that had not ended begins anew, and what its runs that had ended say stays.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pandas as pd
import torch
from boundary_study.design import SEEDS, Place
from boundary_study.run import cells
from boundary_study.tables import RUN

from direction_study.retraced import Way, retraced
from direction_study.tables import COSINES, places
from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.ending import finish
from vcpo_bench.files.atomic import write_text

Run = tuple[Place, float, int]


def stacks(size: int) -> Iterator[list[Run]]:
    """The runs of the study by place, rung and seed, cut into stacks."""
    for place, rung in places().items():
        runs = [(place, rung, seed) for seed in SEEDS]
        yield from (runs[begin : begin + size] for begin in range(0, len(runs), size))


def measure(runs: Sequence[Run], results: Path) -> str:
    """Make the runs of one stack, unless they have ended; which they are."""
    torch.set_num_threads(1)
    place, rung, first = runs[0]
    planned, folder = cells(runs), ResultsFolder(results).cells
    if any(CellStore(folder, cell.key).ended() is None for cell in planned):
        for cell, way in zip(planned, retraced(planned), strict=True):
            _finish(cell, _rows(place, rung, way), way, results)
    return f"{place.task}, {place.method}, lag {place.staleness}: {len(runs)} runs from seed {first} on"


def _finish(cell: PlannedCell, rows: pd.DataFrame, way: Way, results: Path) -> None:
    """Write the cosines of a run first, so that one that has ended has those of the same training."""
    store = CellStore(ResultsFolder(results).cells, cell.key)
    with store.open():
        if store.ended() is None:
            where = results / COSINES / f"{cell.key}.csv"
            where.parent.mkdir(exist_ok=True)
            write_text(where, rows.to_csv(index=False, float_format="%.5g"))
            finish(cell, store, way.trainer)


def _rows(place: Place, rung: float, way: Way) -> pd.DataFrame:
    run = (place.task, place.method, place.staleness, rung, way.trainer.config.seed)
    steps = range(len(way.cosines))
    return pd.DataFrame({**dict(zip(RUN, run, strict=True)), "step": steps, "cosine": way.cosines})


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--stack", type=int, default=16)
    given = parser.parse_args()
    ResultsFolder(given.results)
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        for made in pool.map(measure, stacks(given.stack), repeat(given.results)):
            print(made, flush=True)


if __name__ == "__main__":
    main()

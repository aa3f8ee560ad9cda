"""The files of a results folder.

`results/<name>/` holds `grid.json` (the cells that were asked for, and which are controls) and `cells/<key>/` (ended)
or `cells/<key>.partial/` (running or interrupted). An ended cell holds `cell.json` and its tables as Parquet.
`scores/<key>.parquet` and `probes/<key>.parquet` hold what was measured on its checkpoints later.
"""

from pathlib import Path
from typing import Literal

from vcpo_bench.errors import UsageError
from vcpo_bench.files.folders import refuse_link

RULES_VERSION = "2.0"
"""Results are comparable within one version of the rules; every cell records the one it ran under."""

CELLS = "cells"
PARTIAL_SUFFIX = ".partial"
CELL_FILE = "cell.json"
GRID_FILE = "grid.json"
STATE_FILE = "state.json"
"""In the folder of a checkpoint: whose it is, and what is not a tensor."""
STEPS_FILE = "steps.parquet"
EVALS_FILE = "evals.parquet"
LAGS_FILE = "lags.parquet"
EVENTS_FILE = "events.parquet"
SAMPLES_FILE = "samples.parquet"
EPISODES_FILE = "episodes.parquet"
ORIGINS_FOLDER = "origins"
"""In a results folder: the states from which its forked cells start."""
PROBES_FOLDER = "probes"
"""In a results folder: `<key>.parquet` for each cell that was probed (`vcpo-bench lab probe`), with `PROBES`."""
SCORES_FOLDER = "scores"
"""Holds `<key>.parquet` for each cell that `vcpo-bench lab eval` scored: an ended cell's own folder never changes."""

SYNCHRONOUS = "fifo"
"""The usual regime, left out of names; also what synchronous training is called, for every regime is it at lag 0."""

KEY_PATTERN = r"[A-Za-z0-9][A-Za-z0-9.+_-]*"
"""What the key of a cell looks like, so that a path made of one stays in its folder."""

Status = Literal["completed", "nan", "stopped_by", "error"]
"""How a cell ended. `nan`: three updates in a row were not finite. Collapse is a judgment of `analysis`."""


def cells_in(results: Path) -> Path:
    """The folder with the cells of a results folder.

    Raises:
        UsageError: There is none, or a link stands in for it.
    """
    cells = results / CELLS
    refuse_link(cells)
    if not results.exists():
        raise UsageError(f"{results}: there are no results yet; vcpo-bench run --out {results} makes some")
    if not cells.is_dir():
        raise UsageError(f"{results} is not a results folder: it has no {CELLS}/ inside")
    return cells

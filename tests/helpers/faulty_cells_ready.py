"""What the server of `faulty_cells` imports: it trains one cell, so that its children find every module loaded."""

import tempfile
from pathlib import Path

import torch

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.running.cell import run_cell
from vcpo_bench.records.settings import CellSettings

torch.set_num_threads(1)
run_cell.CHECKPOINT_SECONDS = 0.0
_settings = CellSettings(steps=2, prompts=1, responses=2, record="full")
(_cell,) = plan_grid(GridSpec(["vcpo"], [0], [0], ["walk-eos"], settings=_settings, controls=False))
with tempfile.TemporaryDirectory() as _folder:
    run_cell.run_cell(_cell, ResultsFolder(Path(_folder)).cells, 1, lambda *event: None)

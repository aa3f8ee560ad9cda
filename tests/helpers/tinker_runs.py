"""Cells on a `TinkerServer`. As a script it runs one, which a test kills: `tinker_runs.py CELL MODEL OUT`."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.cells.model_source import model_identity
from vcpo_bench.bench.cells.plugin_files import plugins_of
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.methods import load_plugin

RANK = 16
"""At this rank the scale of adapters is 2 both here (twice the rank) and there (32), and so they compare."""
AGREEMENT = 1e-5
"""Nats by which the log-probabilities of the server's sampler and of its learner may differ."""
METHODS = ("vcpo(baseline=group)", "clip", "vespo")


def config(model: Path, method: str = "clip", staleness: int = 0, **changes: Any) -> CellConfig:
    """A cell of a few updates, whose task rewards a random model too."""
    load_plugin(Path(__file__).with_name("chance.py"))
    settings = {"seed": 0, "lr": 1e-2, "lr_warmup": 0, "prompts": 4, "responses": 8, "steps": 6, "max_response": 6}
    settings |= {"learner": f"tinker(rank={RANK})", "sampler": "tinker", "eval_every": 100} | changes
    settings |= {"task": "chance(largest=9,terms=2)", "model": model_identity(str(model))}
    cell = CellConfig(method=method, staleness=staleness, **settings)
    return replace(cell, plugins=plugins_of(cell))


def run(cell: CellConfig, model: Path, out: Path) -> str:
    """Train a cell through the store; returns its status."""
    (out / "cells").mkdir(parents=True, exist_ok=True)
    return run_cell(PlannedCell(cell, cell.key(1), False, 1.0, cell.steps, model), out / "cells", 0, lambda *_: None)


def table_of(out: Path, cell: CellConfig, name: str = "steps") -> pd.DataFrame:
    return pd.read_parquet(out / "cells" / cell.key(1) / f"{name}.parquet")


def facts_of(out: Path, cell: CellConfig) -> dict[str, Any]:
    return json.loads((out / "cells" / cell.key(1) / "cell.json").read_text())


if __name__ == "__main__":
    load_plugin(Path(__file__).with_name("chance.py"))
    run(CellConfig(**json.loads(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3]))

"""Recorded runs, each made once per test file; its `SIZES`, `LAG`, `KEEP_EVERY` and `reward` say what they are like."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from replays import quiet

from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.replay.recorded_cell import RecordedCell, read_cell
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.records.settings import CellSettings

Recorded = Callable[..., RecordedCell]


@pytest.fixture(scope="module")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The recorded run of a method and regime, on `chain`."""
    known: dict[tuple[str, str], RecordedCell] = {}

    def make(method: str = "vcpo", regime: str = "fifo", keep_every: int = 0) -> RecordedCell:
        if (method, regime) not in known:
            settings, lag = CellSettings(**request.module.SIZES), request.module.LAG
            grid = GridSpec((method,), (lag,), (1,), ("chain",), regimes=(regime,), settings=settings, controls=False)
            (cell,) = plan_grid(grid)
            results = ResultsFolder(tmp_path_factory.mktemp("recorded") / "run")
            assert run_cell(cell, results.cells, keep_every, quiet) == "completed"
            known[method, regime] = read_cell(results.cells / cell.key)
        return known[method, regime]

    return make


@pytest.fixture(scope="module")
def rewarded(request: pytest.FixtureRequest) -> Iterator[None]:
    """Random language models are never right: reward something else about a response."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arithmetic, "score", lambda self, item, text: request.module.reward(text))
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny random language model."""
    import hf_models

    return hf_models.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def recorded_model(
    request: pytest.FixtureRequest, rewarded: None, tmp_path_factory: pytest.TempPathFactory, model: Path
) -> Recorded:
    """The recorded run of a method and regime that trained the model."""
    import hf_models

    known: dict[str, RecordedCell] = {}

    def make(method: str = "vcpo", regime: str = "fifo", **more: Any) -> RecordedCell:
        key = repr((method, regime, more))
        if key not in known:
            out = tmp_path_factory.mktemp("run") / "r"
            known[key] = hf_models.recorded(model, out, method, regime, request.module.KEEP_EVERY, **more)
        return known[key]

    return make

"""Language models on a mock device that raises when tensors of different devices meet, as a GPU does."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import hf_models
import mock_cells
import numpy as np
import pytest

from vcpo_bench.bench.tasks.text.arithmetic import Arithmetic
from vcpo_bench.reports.terminal.probe_table import read_probe


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ProcessPoolExecutor]:
    """A process that may have the device: it cannot be taken back."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=mock_cells.reward_chance) as pool:
        yield pool


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("llama", {"method": "vcpo", "record": "full"}),
        ("qwen2", {"method": "vcpo", "regime": "inflight"}),
        ("llama", {"method": "vcpo", "chunk_bytes": 4000}),
        ("gpt2", {"method": "clip", "regime": "inflight(cache=recompute)"}),
        ("llama", {"method": "tba", "sampler": "generate"}),
        ("llama", {"method": "clip", "sampler": "graph(slots=8)"}),
        ("llama", {"method": "clip", "sampler": "torch(slots=3)", "regime": "async(clock=virtual)"}),
        ("llama", {"method": "vespo", "lora": 2, "checkpointing": True, "micro_tokens": 60}),
    ],
)
def test_a_cell_trains_there_as_here_also_when_interrupted(
    elsewhere: ProcessPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, more: dict[str, Any]
) -> None:
    monkeypatch.setattr(Arithmetic, "score", Arithmetic.score)  # put back afterwards
    mock_cells.reward_chance()
    folder = hf_models.save(tmp_path, kind)
    config = {"task": hf_models.TASK, "model": "tiny@0", "staleness": 2, "lr": 1e-3} | more
    there = elsewhere.submit(mock_cells.train_on_mock, config, folder, interrupted=True)
    here = mock_cells.train(config, folder)
    # attention is another kernel there, so the last bits differ
    np.testing.assert_allclose(there.result()["grad_norm"], here["grad_norm"], rtol=1e-3)


def test_a_cell_is_probed_there_as_here(
    elsewhere: ProcessPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Arithmetic, "score", Arithmetic.score)  # put back afterwards
    mock_cells.reward_chance()
    model = hf_models.save(tmp_path / "model")
    cell = hf_models.recorded(model, tmp_path / "run", "vcpo", "fifo(engine_noise=bf16)", micro_tokens=100)
    methods = ("vcpo", "clip+kl(anchor=reference)", "kl-cov")
    there = elsewhere.submit(mock_cells.probe_on_mock, cell.folder, model, methods, tmp_path / "there.csv")
    mock_cells.probe(cell.folder, model, methods, tmp_path / "here.csv")
    there.result()
    tables = []
    for name in ("there", "here"):
        table = read_probe(tmp_path / f"{name}.csv")
        kept = table["quantity"].isin(["variance", "step_scale"])
        tables.append(table[kept].set_index(["method", "lag", "preconditioned", "quantity"])["value"])
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-2)
    assert len(tables[0]) == 14

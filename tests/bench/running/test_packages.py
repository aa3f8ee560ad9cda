"""A package that is missing is asked for before the first cell."""

from dataclasses import replace
from pathlib import Path

import pytest
from pool_jobs import Log, jobs

from vcpo_bench.bench.cells.grid import PlannedCell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.errors import UsageError


def cell(tmp_path: Path, **changes: object) -> PlannedCell:
    (job,) = jobs(tmp_path / "jobs", 1)
    return replace(job.cell, config=replace(job.cell.config, **changes))


def refused(tmp_path: Path, message: str, **changes: object) -> None:
    with pytest.raises(UsageError, match=message):
        run_grid([cell(tmp_path, **changes)], RunOptions(tmp_path / "run", 1), Log())
    assert not (tmp_path / "run").exists()


def test_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcpo_bench.bench.samplers.vllm_engine.releases.installed", lambda: None)
    refused(tmp_path, "vLLM is not installed", sampler="vllm", model="tiny@0")


@pytest.mark.parametrize(("missing", "lora"), [("transformers", 0), ("peft", 4)])
def test_packages_of_language_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, lora: int) -> None:
    def load(name: str) -> None:
        if lora == 0 or name == missing:
            raise ImportError(name, name=missing)

    monkeypatch.setattr("vcpo_bench.bench.running.run_grid.import_module", load)
    refused(
        tmp_path,
        rf"{missing} is missing.*pip install '\.\[hf\]' in a checkout",
        model="tiny@0",
        lora=lora,
        task="arithmetic",
    )

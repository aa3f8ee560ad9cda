"""Devices that are missing, full or broken, what a cell leaves on them, and memory that malloc keeps."""

import gc
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pool_jobs import Log, jobs

from vcpo_bench.bench import devices
from vcpo_bench.bench.cells import provenance
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.devices import release_memory
from vcpo_bench.bench.running.cell import ending, run_cell
from vcpo_bench.bench.running.pool import pool
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import read_sealed

without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


def test_memory_of_a_cell_is_freed_before_the_next() -> None:
    trainer = build_trainer(CellConfig(method="vcpo", staleness=0, seed=0, steps=1, prompts=2, responses=4))
    trainer.advance()
    head = weakref.ref(trainer.policy.output_head())
    gc.disable()
    try:
        del trainer
        release_memory("cpu")
        assert head() is not None  # score norms hook into the model they belong to
        release_memory("cuda")
        assert head() is None
    finally:
        gc.enable()


def out_of_memory(*_: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize(
    ("config", "wanted", "unwanted"),
    [
        ({}, "fewer --jobs", "--micro-tokens"),
        (
            {"model": "tiny@0"},
            "--micro-tokens 16384 (cuts the batch into passes), --checkpointing, --lora 16",
            "--jobs",
        ),
        ({"model": "tiny@0", "lora": 4, "micro_tokens": 900}, "--micro-tokens below 900, --checkp", "--lora"),
        ({"model": "tiny@0", "checkpointing": True}, "--lora 16", "--checkpointing"),
    ],
)
def test_a_full_gpu_says_what_to_change(config: dict, wanted: str, unwanted: str) -> None:
    cell = CellConfig(method="clip", staleness=0, seed=0, **config)
    said = ending._remedy(torch.OutOfMemoryError("no"), cell)
    assert wanted in said
    assert unwanted not in said
    assert ending._remedy(RuntimeError("no"), cell) == ""


def test_a_full_gpu_ends_a_cell_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs(tmp_path, 1)
    monkeypatch.setattr(Trainer, "advance", out_of_memory)
    log = Log()
    assert run_cell.run_cell(job.cell, job.cells_folder, 0, lambda name, *rest: getattr(log, name)(*rest)) == "error"
    facts = read_sealed(job.cells_folder / job.cell.key / "cell.json")
    assert "Tried to allocate 2.00 GiB" in facts["error"]
    assert "the GPU is full" in facts["reason"] == log.names("ended")[0][3]


def test_a_full_gpu_does_not_condemn_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs(tmp_path, 1)
    monkeypatch.setattr(run_cell, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(run_cell.CellStore, "finish", lambda *_, **__: out_of_memory())  # as good as a kill at the end
    with pytest.raises(torch.OutOfMemoryError):
        run_cell.run_cell(job.cell, job.cells_folder, 0, lambda *_: None)
    monkeypatch.undo()
    log = Log()
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "load", out_of_memory)
        run_cell.run_cell(job.cell, job.cells_folder, 0, lambda name, *rest: getattr(log, name)(*rest))
    assert log.names("message") == []
    assert log.names("ended")[0][1] == "error"


@pytest.mark.slow
@without_gpu
def test_after_an_error_on_a_gpu_the_next_cell_gets_a_new_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    spawn = pool._spawn

    def counted(position: int) -> pool._Worker:
        worker = spawn(position)
        begun.append(worker.process.pid)
        return worker

    monkeypatch.setattr(pool, "_spawn", counted)
    log = Log()
    on_gpu = [replace(job, cells=(replace(job.cell, device="cuda"),)) for job in jobs(tmp_path, 2)]
    assert pool.run_jobs(on_gpu, 1, log) == 2
    assert len(set(begun)) == 2
    assert [event[1] for event in log.names("ended")] == ["error", "error"]
    assert log.names("message") == []


def test_a_cpu_names_no_gpu() -> None:
    assert provenance.gpu("cpu") == provenance.gpu("cuda:99") == {}


COUNT_FAULTS = """
import resource, sys
import numpy as np
from vcpo_bench.bench.devices import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def use():
    # sizes that grow, so that the default threshold cannot adapt to them
    for megabytes in range(33, 43):
        np.ones(megabytes << 17)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    done = subprocess.run([sys.executable, "-c", COUNT_FAULTS, mode], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is glibc's")
def test_freed_memory_is_used_again() -> None:
    assert faults("keep") < 0.1 * faults("default")


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.sys, "platform", "darwin")
    assert devices.keep_freed_memory() is False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems are asked through torch")
def test_without_a_driver_nobody_waits_for_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(devices.ctypes, "CDLL", absent)
    monkeypatch.setattr(devices.Path, "exists", lambda path: False)
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: pytest.fail("asked torch"))
    with pytest.raises(UsageError, match="--device cuda:9: this machine has 0 CUDA devices; use cpu"):
        devices.checked_device("cuda:9")


@pytest.mark.parametrize(
    ("found", "multiplies"),
    [
        ({"avx2": True, "avx512_bf16": False}, False),
        ({"avx512_bf16": True}, True),
        ({"amx_bf16": True}, True),
        ({"bf16": True}, True),
        ({"sve_bf16": True}, True),
    ],
)
def test_a_cpu_multiplies_bfloat16_where_it_has_instructions(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, bool], multiplies: bool
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert devices.multiplies_bfloat16("cpu") == multiplies
    assert devices.multiplies_bfloat16("cuda:0")

"""A cell on two processes: what it records, how it resumes, what happens when a process dies, and what is refused."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import chance
import hf_models
import numpy as np
import pytest
from patience import within

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.plugin_files import plugins_of
from vcpo_bench.bench.sharding.leader import Leader, build_leader
from vcpo_bench.bench.sharding.other_ranks import RankDiedError, RankFailedError
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.methods import load_plugin
from vcpo_bench.records.cell_file import read_cell_file

TOLERANCE = {"rtol": 1e-3, "atol": 1e-5}
TIMES = ("seconds",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hf_models.save(tmp_path_factory.mktemp("model"))


@pytest.fixture
def task() -> Path:
    """A plug-in, which the other processes must load too."""
    load_plugin(chance.__file__)
    return Path(chance.__file__)


def config(shards: int, **more: Any) -> CellConfig:
    settings = {"method": "vcpo", "staleness": 2, "prompts": 3, "responses": 4, "steps": 4, "eval_every": 2, "lr": 1e-2}
    settings |= {"task": "chance(terms=2,largest=9)", "model": "tiny@0", "seed": 0, "record": "full", "shards": shards}
    cell = CellConfig(**(settings | more))
    return replace(cell, plugins=plugins_of(cell))


def finished(trainer: Trainer) -> Trainer:
    with closing(trainer):
        while not trainer.status:
            trainer.advance()
    return trainer


def columns(trainer: Trainer) -> Iterator[tuple[str, list[Any]]]:
    """Everything recorded, wall-clock times aside."""
    for name, table in trainer.recorder.tables.items():
        for column, values in table.columns.items():
            if not column.startswith(TIMES):
                yield f"{name} {column}", list(values)


def test_it_records_what_one_process_records_and_resumes_bit_for_bit(folder: Path, tmp_path: Path, task: Path) -> None:
    alone, together = (
        finished(build_trainer(config(1), start=folder)),
        finished(build_leader(config(2), folder, "", None)),
    )
    wanted, found = dict(columns(alone)), dict(columns(together))
    assert wanted.keys() == found.keys()
    for name, values in wanted.items():
        if values and isinstance(values[0], float):
            np.testing.assert_allclose(np.array(found[name], float), np.array(values, float), **TOLERANCE, err_msg=name)
        elif name != "samples.parquet log_ratios":  # numbers as text
            assert found[name] == values, name
    assert {"steps.parquet ess_ratio", "steps.parquet grad_cosine", "samples.parquet score_norm_sq"} <= found.keys()
    assert min(wanted["steps.parquet ess_ratio"]) < 0.999

    stopped = build_leader(config(2), folder, "", None)
    for _ in range(2):
        stopped.advance()
    stopped.save(tmp_path)
    assert isinstance(stopped, Leader)
    stopped.others.ranks[0].process.send_signal(signal.SIGKILL)
    with pytest.raises(RankDiedError, match=r"^rank 1 of 2 died \(SIGKILL\); most likely .* memory$"):
        stopped.advance()
    stopped.close()
    again = build_leader(config(2), folder, "", None)
    again.load(tmp_path)
    np.testing.assert_equal(dict(columns(finished(again))), found)


def test_a_grid_goes_on_where_a_process_of_a_cell_was_killed(folder: Path, tmp_path: Path, task: Path) -> None:
    out = tmp_path / "out"
    asked = f"--methods vcpo --staleness 1 --seeds 1 --steps 12 --no-controls --model {folder} --plugin {task} --jobs 1"
    sizes = f"--task chance(terms=2,largest=9) --prompts 2 --responses 2 --shards 2 --out {out}"
    grid = subprocess.Popen(
        [sys.executable, "-m", "vcpo_bench", "run", *asked.split(), *sizes.split()],
        env={**os.environ, "VCPO_BENCH_CHECKPOINT_SECONDS": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    deadline = time.monotonic() + within(200)
    while not list(out.glob("cells/*.partial/checkpoint-*[1-9]*")):
        assert grid.poll() is None, grid.communicate()[0].decode()
        assert time.monotonic() < deadline, "no checkpoint was written"
        time.sleep(0.05)
    (follower,) = followers(out)
    os.kill(follower, signal.SIGKILL)
    said = grid.communicate(timeout=within(200))[0].decode()
    assert grid.returncode == 0, said
    assert "rank 1 of 2 died (SIGKILL)" in said
    assert "resuming from its checkpoint" in said
    (cell,) = out.glob("cells/*/cell.json")
    facts = read_cell_file(cell)
    assert (facts["status"], facts["steps_done"], facts["config"]["shards"]) == ("completed", 12, 2)
    assert followers(out) == []


def followers(out: Path) -> list[int]:
    """The other processes of a grid's cells: children of its workers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            above = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
            mine = str(out).encode() in Path(f"/proc/{above}/cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if b"vcpo_bench.bench.sharding.follower" in command and mine:
            found.append(int(process.name))
    return found


def test_an_error_of_another_process_ends_the_cell_with_its_text(folder: Path, task: Path) -> None:
    started = build_leader(config(2), folder, "", None)
    assert isinstance(started, Leader)
    with closing(started):
        with pytest.raises(RankFailedError, match=r"^rank 1 of 2 failed:\n(?s:.*)not enough values to unpack"):
            with started.others.doing("restore"):
                raise RuntimeError("Connection closed by peer")

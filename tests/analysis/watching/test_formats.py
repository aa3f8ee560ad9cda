"""Every format that can be read can be followed while it grows."""

import csv
import io
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from foreign_runs import event

from vcpo_bench.analysis.results import load
from vcpo_bench.analysis.watching import Follower

NAMES = ("training/global_step", "critic/score/mean", "actor/pg_loss")


def grown(kind: str, steps: int) -> bytes:
    """A log of so many steps, the last line of it cut in half where the format has lines."""
    rows = [dict(zip(NAMES, (step, 0.5, 0.1), strict=True)) for step in range(steps)]
    if kind == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, NAMES)
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode() + b"99,0.5"
    if kind == "log":
        lines = [f"step:{step} - critic/score/mean:0.5 - actor/pg_loss:0.1\n" for step in range(steps)]
        return "".join(["(TaskRunner pid=7) starting\r\x1b[0m\n", *lines]).encode() + b"step:99 - "
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode() + b'{"training/glo'
    if kind == "trainer_state":
        history = [{"step": step, "reward": 0.5, "frac_reward_zero_std": 0.1} for step in range(steps)]
        return json.dumps({"log_history": history}).encode()
    return b"".join(event(step, "critic/score/mean", 0.5) + event(step, "actor/lr", 1e-6) for step in range(steps))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("run.csv", "csv"),
        ("train.log", "log"),
        ("metrics.jsonl", "jsonl"),
        ("events.out.tfevents.1.host", "events"),
        ("trainer_state.json", "trainer_state"),
    ],
)
@pytest.mark.parametrize("folder", [False, True])
def test_a_growing_file(name: str, kind: str, folder: bool, tmp_path: Path) -> None:
    file = tmp_path / name
    framework = "trl" if kind == "trainer_state" else "verl"
    follower = Follower(tmp_path if folder else file, framework)
    assert not follower.poll()
    assert follower.waiting
    for steps in (3, 7):
        file.write_bytes(grown(kind, steps))
        assert follower.poll(), follower.waiting
        assert follower.run is not None
        assert follower.run.series["reward"].steps[-1] == steps - 1
        assert follower.went_back is None
    assert not follower.poll()


def test_checkpoints_that_come_and_go(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    for steps in (3, 7):
        shutil.rmtree(tmp_path / f"checkpoint-{steps - 4}", ignore_errors=True)
        place = tmp_path / f"checkpoint-{steps}"
        place.mkdir()
        (place / "trainer_state.json").write_bytes(grown("trainer_state", steps))
        assert follower.poll()
        assert follower.run is not None
        assert follower.run.last_step == steps - 1


def test_a_database_that_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "project.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE metrics (run_name TEXT, step INTEGER, metrics TEXT)")
        database.commit()
        follower = Follower(path, "trl")
        for step in range(2):
            row = {"train/reward": 0.5, "train/frac_reward_zero_std": 0.0}
            database.execute("INSERT INTO metrics VALUES ('r', ?, ?)", (step, json.dumps(row)))
            database.commit()
            assert follower.poll(), follower.waiting
            assert follower.run is not None
            assert follower.run.last_step == step


def test_a_cell_of_ours_while_it_runs_and_when_it_ends(tmp_path: Path, make_results: Any) -> None:
    options = {"methods": ("tis",), "lags": (1,), "seeds": (0,), "steps": 20, "controls": False}
    make_results(tmp_path / "running", partial=("tis",), **options)
    make_results(tmp_path / "ended", **options)
    (running,) = (tmp_path / "running" / "cells").iterdir()
    follower = Follower(running)
    assert follower.poll()
    assert not follower.ended
    (ended,) = (tmp_path / "ended" / "cells").iterdir()
    shutil.rmtree(running)
    shutil.copytree(ended, tmp_path / "running" / "cells" / running.name.removesuffix(".partial"))
    assert follower.poll()
    assert follower.ended
    assert follower.run is not None
    assert follower.run.status == load(tmp_path / "ended").cells["status"].iloc[0]

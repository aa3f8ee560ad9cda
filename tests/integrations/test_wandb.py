"""The real wandb: an offline mirror read back record by record, and an online one whose server never answers.

Runs in the environment that `.ci/integrations.d/evals.sh` builds; skipped where wandb is absent.
"""

import json
import math
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tracked_runs

pytest.importorskip("wandb", exc_type=ImportError, reason="runs in .ci/integrations evals")


def records(path: Path) -> Iterator[Any]:
    """The records of an offline run: a 7-byte file header, then blocks of 32 KiB with records in one or more pieces."""
    from wandb.proto import wandb_internal_pb2

    data, place, buffer = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
        piece, place = data[place + 7 : place + 7 + length], place + 7 + length
        buffer = piece if kind in (1, 2) else buffer + piece
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(buffer)
            yield record


def values(items: Any) -> dict[str, Any]:
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items}


def services() -> set[int]:
    """Running processes of wandb's service."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().startswith("wandb-core"):
                found.add(int(folder.name))
        except OSError:
            pass
    return found


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose command is killed once part of it is mirrored, and then run again."""
    root = tmp_path_factory.mktemp("wandb")
    out = root / "run"
    command = [*tracked_runs.RUN, "--steps", "60", "--out", str(out), "--report-to", "wandb"]
    before = services()
    tracked_runs.killed_once(command, root / "home", lambda: list(out.glob("wandb/offline-run-*/*.wandb")))
    tracked_runs.wait_for(lambda: not services() - before)
    assert tracked_runs.run(60, out, "wandb", root / "home").returncode == 0
    return out


def test_every_recorded_number_is_there_once(mirrored: Path) -> None:
    (cell,) = (mirrored / "cells").iterdir()
    (path,) = (mirrored / "wandb").glob(f"offline-run-*-{cell.name}/*.wandb")
    found = list(records(path))
    rows = [values(one.history.item) for one in found if one.WhichOneof("record_type") == "history"]
    assert [row["_step"] for row in rows] == list(range(61))
    for name in ("steps", "evals"):
        recorded = 0
        for wanted in pq.read_table(cell / f"{name}.parquet").to_pylist():
            row = rows[wanted.pop("step")]
            for column, value in wanted.items():
                there = value not in (None, "") and not (isinstance(value, float) and not math.isfinite(value))
                assert row.get(f"{name}/{column}") == (value if there else None)
                recorded += there
        assert recorded == sum(key.startswith(f"{name}/") for row in rows for key in row)
    summary: dict[str, Any] = {}
    for one in found:
        if one.WhichOneof("record_type") == "summary":
            summary |= values(one.summary.update)
    assert (summary["status"], summary["steps_done"]) == ("completed", 60)
    (run,) = (one.run for one in found if one.WhichOneof("record_type") == "run")
    assert (run.run_id, run.run_group, run.job_type) == (cell.name, "run", "cell")
    assert values(run.config.update)["staleness"] == 2


def test_the_report_is_there_and_the_home_folder_is_not_touched(mirrored: Path) -> None:
    (page,) = (mirrored / "wandb").glob("offline-run-*-report-run/files/media/html/*.html")
    assert page.read_bytes() == (mirrored / "report.html").read_bytes()
    assert not list((mirrored.parent / "home").rglob("*wandb*"))


def test_the_command_mirrors_what_is_missing_only(mirrored: Path) -> None:
    tracked_runs.check_mirrors_what_is_missing_only(mirrored, "wandb(project=other)")


def test_a_server_that_never_answers_costs_a_warning(tmp_path: Path) -> None:
    before = services()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nowhere = {"WANDB_BASE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "WANDB_API_KEY": "0" * 40}
        patience = {"VCPO_BENCH_MIRROR_PATIENCE_SECONDS": "8"}
        home = tmp_path / "home"
        done = tracked_runs.run(60, tmp_path / "run", "wandb(mode=online)", home, **nowhere, **patience)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "wandb: no heartbeat for 8 seconds; the run continues without it" in done.stderr
    assert len(list((tmp_path / "run" / "cells").glob("*/cell.json"))) == 1
    tracked_runs.wait_for(lambda: not services() - before)


def test_it_takes_no_settings_from_a_strangers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    from vcpo_bench.bench.outside.trackers.wandb import Wandb

    for file in (tmp_path / "wandb" / "settings", tmp_path / "wandb" / ".cache" / "config" / "settings"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("[default]\nbase_url = http://evil.example\n")
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    try:
        Wandb().connect(tmp_path)
        assert "evil" not in wandb.setup().settings.base_url
    finally:
        wandb.teardown()
        os.environ.clear()
        os.environ.update(before)

"""The mirror to wandb: what is logged from the tables, once, whatever is interrupted; and a wandb that misbehaves.

The real wandb is run by `.ci/integrations.d/evals.sh`; here a stand-in notes what it is told, or fails.
"""

import json
import shutil
import sys
from collections import defaultdict
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from command_line import refused

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.outside.mirror import process
from vcpo_bench.bench.outside.mirror.follow import MirrorSettings, TrackerMirror, history
from vcpo_bench.bench.outside.mirror.process import Mirror, mirror_folder
from vcpo_bench.bench.outside.trackers.wandb import Wandb, WandbConnection
from vcpo_bench.commands.support.tracking import mirrored
from vcpo_bench.errors import UsageError
from vcpo_bench.records.table_file import seal_beside


class FakeWandb:
    """Remembers rows by run id like a server: a run resumed online starts after its last row."""

    Settings = staticmethod(lambda **_: None)

    def __init__(self) -> None:
        self.rows: defaultdict[str, list[tuple[int, dict]]] = defaultdict(list)
        self.ended: dict[str, int] = {}
        self.summaries: dict[str, dict] = defaultdict(dict)
        self.started: list[dict] = []

    def init(self, **options):
        name, self.started = options["id"], [*self.started, options]
        if options["mode"] == "offline":
            self.rows[name] = []
            (Path(options["dir"]) / "wandb" / f"offline-run-{len(self.started)}-{name}").mkdir(parents=True)
        return SimpleNamespace(
            starting_step=self.rows[name][-1][0] + 1 if self.rows[name] else 0,
            log=lambda metrics, step: self.rows[name].append((step, metrics)),
            config=SimpleNamespace(update=lambda *_, **__: None),
            summary=self.summaries[name],
            finish=lambda exit_code=0: self.ended.update({name: exit_code}),
        )


@pytest.fixture
def follow():
    """`follow(settings, wandb)`: a mirror that lets go of the folder when the test is over."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(closing(make_mirror(*arguments)))


def make_mirror(wanted: MirrorSettings, wandb: FakeWandb) -> TrackerMirror:
    tracker = wanted.open()
    return TrackerMirror(wanted, tracker, WandbConnection(tracker, Path(wanted.folder), wandb))


def small(make_results, folder: Path, **options) -> Path:
    return make_results(folder, methods=("vcpo", "clip"), lags=(1,), seeds=(0,), steps=30, controls=False, **options)


def settings(folder: Path, mode: str = "online") -> MirrorSettings:
    files = sorted((folder / "cells").rglob("cell.json"))
    facts = [json.loads(path.read_text()) for path in files]
    where = {"mode": mode, "project": "project"}
    return MirrorSettings(str(folder), "wandb", where, {one["key"]: one["config"] for one in facts})


def end(folder: Path, complete: Path) -> None:
    """The running cells of `folder` end as they did in `complete`."""
    for partial in (folder / "cells").glob("*.partial"):
        key = partial.name.removesuffix(".partial")
        shutil.copytree(complete / "cells" / key, folder / "cells" / key)
        shutil.rmtree(partial)


def test_rows_are_the_recorded_ones(make_results, tmp_path):
    cell = next((small(make_results, tmp_path) / "cells").iterdir())
    steps, evals = (pd.read_parquet(cell / f"{name}.parquet") for name in ("steps", "evals"))
    rows = dict(history(cell, 0, ended=True))
    assert list(rows) == list(range(31))
    assert [rows[t]["steps/ess_ratio"] for t in range(30)] == steps["ess_ratio"].tolist()
    assert [rows[t]["evals/greedy_reward"] for t in (0, 10, 20, 30)] == evals["greedy_reward"].tolist()
    assert not any(key.endswith(("/step", "/nonfinite")) for row in rows.values() for key in row)
    assert [step for step, _ in history(cell, 25, ended=False)] == [25, 26, 27, 28, 29]


def test_events_are_counted_by_update(make_results, tmp_path):
    cell = next((small(make_results, tmp_path) / "cells").iterdir())
    happened = [(3, "late"), (3, "late"), (3, "duplicate"), (31, "late")]
    pd.DataFrame(happened, columns=["step", "event"]).to_parquet(cell / "events.parquet")
    rows = dict(history(cell, 0, ended=True))
    found = {step: {key: row[key] for key in row if key.startswith("events/")} for step, row in rows.items()}
    assert {step: counts for step, counts in found.items() if counts} == {
        3: {"events/late": 2, "events/duplicate": 1},
        31: {"events/late": 1},
    }


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_mirror_that_is_stopped_and_started_again_repeats_nothing(make_results, tmp_path, follow, mode):
    complete = small(make_results, tmp_path / "complete")
    folder = small(make_results, tmp_path / "run", partial=("vcpo",))
    wandb = FakeWandb()
    wanted = settings(folder, mode)
    first = follow(wanted, wandb)
    assert first.update() == 1
    (running,) = first.waiting
    first.close()  # as when its process is killed
    end(folder, complete)
    second = follow(wanted, wandb)
    assert second.update(last=True) == 1
    assert second.waiting == []
    assert [step for step, _ in wandb.rows[running]] == list(range(31))
    assert wandb.ended == dict.fromkeys(wanted.cells, 0)
    assert wandb.summaries[running]["status"] == "completed"
    assert {one["group"] for one in wandb.started} == {"run"}
    if mode == "offline":
        assert len(list((folder / "wandb").glob(f"offline-run-*-{running}"))) == 1
    second.close()
    assert follow(wanted, wandb).update(last=True) == 0, "what is mirrored was mirrored again"


def test_a_failed_cell_is_mirrored_once_it_has_been_tried_again(make_results, tmp_path, follow):
    folder = small(make_results, tmp_path, shapes={"vcpo": "error"})
    wandb = FakeWandb()
    mirror = follow(settings(folder), wandb)
    assert mirror.update() == 1
    assert mirror.update(last=True) == 1
    assert sorted(wandb.ended.values()) == [0, 1]


def test_a_cell_mirrored_to_a_full_disk_does_not_count_as_mirrored(make_results, tmp_path, follow, monkeypatch):
    folder = small(make_results, tmp_path)
    mirror = follow(settings(folder), FakeWandb())
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="the disk is full"):
        mirror.update()
    assert len(mirror.waiting) == 2


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_not_logged(make_results, tmp_path, follow, monkeypatch):
    folder = small(make_results, tmp_path, partial=("vcpo", "clip"))
    wandb = FakeWandb()
    mirror = follow(settings_of_partial(folder), wandb)
    found = CellStore.latest_checkpoint
    newer = iter([False, True] * 2)
    monkeypatch.setattr(CellStore, "latest_checkpoint", lambda one: Path("newer") if next(newer) else found(one))
    mirror.update()
    assert wandb.rows == {}
    monkeypatch.undo()
    mirror.update()
    assert len(wandb.rows) == 2


def test_a_checkpoint_that_vanishes_while_it_is_read_is_waited_for(make_results, tmp_path, follow, monkeypatch):
    folder = small(make_results, tmp_path, partial=("vcpo",))
    wandb = FakeWandb()
    mirror = follow(settings_of_partial(folder), wandb)
    kept = {}

    def vanish(path: Path):
        seal = seal_beside(path)
        if path.name == "evals.parquet":
            kept[path] = path.read_bytes()
            path.unlink()
        return seal

    monkeypatch.setattr("vcpo_bench.bench.outside.mirror.follow.seal_beside", vanish)
    mirror.update()
    assert kept
    assert wandb.rows == {}
    monkeypatch.undo()
    for path, content in kept.items():
        path.write_bytes(content)
    mirror.update()
    assert len(wandb.rows) == 1


def settings_of_partial(folder: Path) -> MirrorSettings:
    keys = [path.name.removesuffix(".partial") for path in (folder / "cells").glob("*.partial")]
    return MirrorSettings(str(folder), "wandb", {"mode": "online", "project": "project"}, {key: {} for key in keys})


def test_only_one_mirror_works_on_a_folder(make_results, tmp_path, follow):
    folder = small(make_results, tmp_path)
    first, second = follow(settings(folder), FakeWandb()), make_mirror(settings(folder), FakeWandb())
    assert first.update() == 2
    assert second.update() == 0
    with pytest.raises(BlockingIOError, match="another process"):
        second.update(last=True)


def run_against(fake: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Warnings of a mirror whose wandb is `fake`."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "wandb.py").write_text(fake)
    package = Path(process.__file__).parents[3].parent
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'fake'}:{package}")
    monkeypatch.setattr(process, "PATIENCE_SECONDS", 1.0 if "sleep" in fake else 60.0)
    said: list[str] = []
    cells = [
        SimpleNamespace(key=key, config=SimpleNamespace(values=lambda config=config: config))
        for key, config in settings(folder).cells.items()
    ]
    with Mirror(Wandb(project="project"), folder, cells, said.append):
        pass
    return said


@pytest.mark.parametrize(
    ("fake", "problem"),
    [
        ("raise ImportError", "not installed"),
        ("Settings = init = lambda **_: 1 / 0", "ZeroDivisionError: division by zero"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "ended with -9"),
        ("import time\ntime.sleep(3600)", "no heartbeat for 1 seconds"),
    ],
    ids=["missing", "fails", "crashes", "hangs"],
)
def test_a_wandb_that_does_not_work_is_one_warning(make_results, tmp_path, monkeypatch, fake, problem):
    folder = small(make_results, tmp_path / "run")
    said = run_against(fake, folder, tmp_path, monkeypatch)
    assert len(said) == 1
    assert problem in said[0]
    assert f"vcpo-bench results mirror {folder} --to 'wandb(project=project)'" in said[0]


def test_a_report_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(process, "_start", lambda: (_ for _ in ()).throw(OSError(12, "no memory")))
    how = SimpleNamespace(out=tmp_path)
    with mirrored([Wandb()], [], how, said.append) as report:
        report(lambda: Path("/nowhere/x").resolve(strict=True))
    assert "its process cannot be started (no memory)" in said[0]
    assert "the report cannot be written" in said[1]
    with mirrored([], [], how, said.append) as report:
        report(lambda: pytest.fail("it was written"))


def test_errors_of_the_command_are_one_line(make_results, tmp_path, monkeypatch):
    said = refused("run", "--report-to", "wandb(mode=onlin)", "--out", str(tmp_path / "run"))
    assert "did you mean online or offline" in said
    assert not (tmp_path / "run").exists()
    with pytest.raises(UsageError, match="no ended cell"):
        mirror_folder(tmp_path, Wandb(), None)
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(UsageError, match=r"not installed \(pip install '\.\[wandb\]' in a checkout\)"):
        mirror_folder(small(make_results, tmp_path), Wandb(), None)

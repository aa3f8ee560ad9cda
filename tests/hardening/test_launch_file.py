"""Jobs named in a stranger's results folder: none of the user is canceled, and no file outside it is touched."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from command_line import call
from fake_ray import FakeRay
from fake_scheduler import FakeScheduler, cells_of

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers import ray_actor, ray_tasks, slurm
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import FOLDER, LaunchFile
from vcpo_bench.bench.running.schedulers.loop.scheduler import Scheduler
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.bench.running.schedulers.ray_actor import actor_name
from vcpo_bench.bench.running.schedulers.ray_tasks import Ray, _RayScheduler
from vcpo_bench.files.checksums import write_sealed

ODD = (
    "--user=me", "-u me", "--state=RUNNING", "4711 4712", "*", "", "../../home/x", "/home/x", "a:b", "ray:1", "..",
    "0x1",
)  # fmt: skip


def plant(out: Path, **parts: object) -> None:
    """A launch file as a stranger can write it."""
    (out / FOLDER).mkdir(exist_ok=True)
    write_sealed(out / FOLDER / "launch.json", parts, cover=False)


def submit(scheduler: Scheduler, out: Path) -> None:
    """Open a folder whose launch file says that such jobs were replaced: they are canceled."""
    (cell,) = cells_of(out, 1)
    plant(out, replaced=dict.fromkeys(ODD, cell.key))
    LaunchFile(out).record_handles({cell.key: "1"})
    SchedulerLoop(scheduler, [], RunOptions(out, 0)).submit()


def test_slurm_is_asked_to_cancel_only_jobs_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    ended = SimpleNamespace(wait=lambda seconds: None)
    monkeypatch.setattr(slurm, "_answer", lambda words: asked.append(list(words)) or "")
    monkeypatch.setattr(slurm, "_begin", lambda words: asked.append(list(words)) or ended)
    scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
    scheduler.cancel({*ODD, "4711", "4712_3"})
    submit(scheduler, tmp_path)
    canceling = [words for words in asked if words[0] == "scancel"]
    name = next(word for words in asked if words[0] == "squeue" for word in words if word.startswith("--name="))
    assert canceling == [["scancel", "--quiet", name, "4711", "4712_3"]]


def test_the_jobs_of_two_folders_have_different_names(tmp_path: Path) -> None:
    names = {slurm.Slurm().connect(RunOptions(tmp_path / one, 0), False)._name for one in "ab"}  # type: ignore[attr-defined]
    assert len(names) == 2


def test_ray_is_asked_only_about_tasks_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay(monkeypatch)
    canceled: list[tuple[str, list[int]]] = []
    own, other = actor_name(tmp_path), actor_name(tmp_path / "other")

    class Actor:
        def __init__(self, name: str) -> None:
            self.name = name

        def cancel(self, numbers: list[int]) -> None:
            canceled.append((self.name, numbers))

        def states(self, numbers: list[int]) -> dict[int, str]:
            return dict.fromkeys(numbers, "")

    for name in (own, other, "anything"):
        ray.add(name, Actor(name))
    scheduler = _RayScheduler(Ray(), tmp_path)
    handles = {f"{own}:1", f"{other}:1", "anything:1", f"{own}:x", f"{own}:{'9' * 400}", *ODD}
    assert scheduler.alive(handles) == {f"{own}:1"}
    scheduler.cancel(handles)
    submit(scheduler, tmp_path)
    assert canceled == [(own, [1])]


@pytest.mark.parametrize(
    "value", [None, 1, "x", [1], [[1, 2]], {"KEY": None}, {"KEY": "x"}, {"KEY": [1]}, {"KEY": {}}, {"KEY": True}]
)
@pytest.mark.parametrize("part", ["cells", "handles", "replaced", "deaths"])
def test_what_is_no_entry_is_none(tmp_path: Path, part: str, value: object) -> None:
    (cell,) = cells_of(tmp_path, 1)
    plant(tmp_path, **{part: {cell.key: value["KEY"]} if isinstance(value, dict) else value})
    scheduler = FakeScheduler()
    loop = SchedulerLoop(scheduler, [cell], RunOptions(tmp_path, 0))
    loop.submit()
    assert [job.keys for job in scheduler.calls[0]] == [(cell.key,)]
    loop._check_jobs(SimpleNamespace(message=lambda text: None), 0.0)  # type: ignore[arg-type]


def test_jobs_unpickle_only_what_was_written_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of jobs can be guessed: a pickle under the next one would be found before ours is written."""
    planted = tmp_path / FOLDER / "slurm" / "1_submitted.pkl"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"pickle")
    made: list[dict[str, Any]] = []

    class Executor:
        def __init__(self, folder: Path, **settings: Any) -> None:
            made.append({"folder": Path(folder), "files": list(Path(folder).iterdir()), **settings})

        def update_parameters(self, **parameters: Any) -> None:
            pass

    package, core, utils = (ModuleType(name) for name in ("submitit", "submitit.core", "submitit.core.utils"))
    package.SlurmExecutor, utils.FailedJobError = Executor, RuntimeError  # type: ignore[attr-defined]
    for module in (package, core, utils):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(slurm, "_answer", lambda words: "")
    monkeypatch.setattr(slurm, "_submit", lambda executor, array: ["1_0"])
    for _ in range(2):
        scheduler = slurm.Slurm().connect(RunOptions(tmp_path, 0), detach=False)
        list(scheduler.submit([Job(tmp_path, ("key",))], 0))
    first, second = made
    assert first["folder"] != second["folder"]
    assert first["folder"].parent == planted.parent
    assert first["files"] == second["files"] == []
    assert first["python"].endswith(" -P"), "it would import from the working directory"


@pytest.fixture
def with_plugin(tmp_path: Path) -> Callable[..., Any]:
    """`run-cell` on a folder that names a plug-in."""
    (cell,) = cells_of(tmp_path / "gift", 1)
    file = tmp_path / "gift" / "plugin.py"
    file.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n")
    LaunchFile(tmp_path / "gift").add_cells(RunOptions(tmp_path / "gift", 0, plugins=(file,)).cell_jobs([(cell,)]))
    return lambda *more: call("run-cell", "--out", str(tmp_path / "gift"), "--key", cell.key, *more)


def test_a_plug_in_that_only_the_folder_names_is_not_run(tmp_path: Path, with_plugin: Callable[..., Any]) -> None:
    file = tmp_path / "gift" / "plugin.py"
    refused = with_plugin()
    assert refused.exit_code == 2
    assert f"names the plug-in {file}, which runs with your rights; read it, then add --plugin {file}" in " ".join(
        refused.stderr.split()
    )
    assert not (tmp_path / "ran").exists()
    with_plugin("--plugin", str(file))
    assert (tmp_path / "ran").exists()


def test_ray_is_connected_to_from_a_folder_without_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workers import from the folder where it is connected to, before any other; tasks then work in ours."""
    ray, seen = FakeRay(monkeypatch), list[Path]()
    ray.init = lambda **_: seen.append(Path.cwd())  # type: ignore[attr-defined]
    monkeypatch.setattr(ray_tasks, "_running", lambda address: "head:6379")
    monkeypatch.chdir(tmp_path)
    Ray().connect(RunOptions(Path("out"), 0), detach=False)
    monkeypatch.setattr(ray_actor, "run_job", lambda job, name: seen.append(Path.cwd()))
    ray_actor._run(Job(tmp_path, ("key",)), "task", str(tmp_path))
    ray_actor._run(Job(tmp_path, ("key",)), "task", str(tmp_path / "of another machine"))
    assert seen == [Path("/"), tmp_path, tmp_path]


def test_a_launch_file_names_cells_by_mappings(tmp_path: Path) -> None:
    plant(tmp_path, cells={"key": "text", "other": {}})
    for key, said in (("key", "holds no such cell"), ("other", "does not say how to run other")):
        refused = call("run-cell", "--out", str(tmp_path), "--key", key)
        assert refused.exit_code == 2
        assert said in " ".join(refused.stderr.split())
    assert json.loads((tmp_path / FOLDER / "launch.json").read_text())["cells"]["other"] == {}

"""Ray: what it refuses, what is told of tasks that it does not start, and clusters that are away for a while."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_ray import ActorDiedError, ActorUnavailableError, FakeRay, GetTimeoutError
from fake_scheduler import cells_of

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers import ray_actor
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.bench.running.schedulers.loop.scheduler_loop import SchedulerLoop
from vcpo_bench.bench.running.schedulers.ray_actor import TaskActor, actor_name
from vcpo_bench.bench.running.schedulers.ray_demand import why_waiting
from vcpo_bench.bench.running.schedulers.ray_tasks import Ray, _RayScheduler
from vcpo_bench.errors import UsageError

NEEDS = {"num_cpus": 1.0, "num_gpus": 0.0}


class OverError(Exception):
    """Ends the thread of an actor."""


class Looking(threading.Thread):
    """The thread of an actor, which goes on for ever."""

    def run(self) -> None:
        with suppress(OverError):
            super().run()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    """The threads of actors end with the test."""
    over = threading.Event()

    def pause(seconds: float) -> None:
        if over.wait(seconds / 100):
            raise OverError

    monkeypatch.setattr(ray_actor, "time", SimpleNamespace(sleep=pause))
    monkeypatch.setattr(ray_actor, "threading", SimpleNamespace(Thread=Looking, Lock=threading.Lock))
    yield FakeRay(monkeypatch)
    over.set()
    for thread in threading.enumerate():
        if isinstance(thread, Looking):
            thread.join()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"gpus": 1.5}, "gives a part of one GPU, or whole ones; use gpus=2, or at most 1"),
        ({"gpus": 0.00001}, r"ray\(gpus=1e-05\): Ray counts in steps of 0.0001; ask for more"),
        ({"cpus": 0.00009}, r"ray\(cpus=9e-05\): Ray counts in steps of 0.0001; ask for more"),
    ],
)
def test_what_ray_would_refuse_in_the_actor_is_refused_here(asked: dict[str, float], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Ray(**asked).check_request()


@pytest.mark.parametrize("asked", [{"gpus": 0.25}, {"gpus": 0.0001}, {"gpus": 8}, {"cpus": 1.5}])
def test_what_ray_takes_is_not_refused(asked: dict[str, float]) -> None:
    Ray(**asked).check_request()


def test_a_task_that_ray_refuses_has_ended_and_others_go_on(ray: FakeRay) -> None:
    ray.refuses = lambda options: options["num_gpus"] == 1.5
    actor = TaskActor("k", "/")
    actor.submit([0], [Job(Path(), ("bad",))], {"num_cpus": 1, "num_gpus": 1.5}, 0, 1)
    actor.submit([1], [Job(Path(), ("good",))], NEEDS, 0, 1)
    deadline = time.monotonic() + 60
    while "cell good" not in ray.started and time.monotonic() < deadline:
        time.sleep(0.01)  # its thread starts it, without anybody who asks
    assert actor.states([0, 1, 2]) == {0: "The specified quantity 1.5 is not.", 1: ""}


def test_whatever_a_task_raises_it_has_ended(ray: FakeRay) -> None:
    actor = TaskActor("k", "/")
    actor.submit([0, 1], [Job(Path(), (key,)) for key in "ab"], NEEDS, 0, 0)
    actor.states([])
    for reference, problem in zip(ray.started.values(), (KeyError(), TypeError("cannot be pickled")), strict=True):
        reference.problem, reference.ready = problem, True
    assert actor.states([0, 1]) == {0: "KeyError", 1: "cannot be pickled"}


def test_the_actor_survives_a_cluster_that_does_not_answer(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original, calls = FakeRay.wait, []

    def fails_once(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("the raylet is away")
        return original(*arguments, **options)

    monkeypatch.setattr(FakeRay, "wait", fails_once)
    actor = TaskActor("k", "/")
    actor.submit([0], [Job(Path(), ("a",))], NEEDS, 0, 0)
    deadline = time.monotonic() + 60
    while len(calls) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(calls) >= 3
    assert "the raylet is away" in capsys.readouterr().err


def test_a_task_that_was_canceled_before_it_arrived_does_not_start(ray: FakeRay) -> None:
    actor = TaskActor("k", "/")
    actor.cancel([0])
    actor.submit([0, 1], [Job(Path(), (key,)) for key in "ab"], NEEDS, 0, 0)
    assert actor.states([0, 1]) == {0: "canceled", 1: ""}
    assert list(ray.started) == ["cell b"]


@pytest.mark.parametrize("problem", [ActorUnavailableError("grpc"), GetTimeoutError("30 s")])
def test_an_actor_that_is_away_for_a_while_ends_nothing(ray: FakeRay, tmp_path: Path, problem: Exception) -> None:
    name = actor_name(tmp_path)
    actor = TaskActor(name, "/")
    actor.submit([0], [Job(Path(), ("a",))], NEEDS, 0, 0)
    ray.add(name, actor)
    scheduler = _RayScheduler(Ray(), tmp_path)
    ray.away = problem
    assert scheduler.alive({f"{name}:0"}) == {f"{name}:0"}
    assert ray.timeouts[-1] is not None, "it would wait for ever"
    ray.away = None
    assert scheduler.alive({f"{name}:0", f"{name}:7"}) == {f"{name}:0"}
    ray.away = ActorDiedError("its node died")
    assert scheduler.alive({f"{name}:0"}) == set()
    assert scheduler.result(f"{name}:0").reason == "the actor of its tasks is gone"


def test_tasks_are_named_before_their_actor_is_there(ray: FakeRay, tmp_path: Path) -> None:
    """A command that is killed there submits them again, and one that is stopped cancels them."""
    cells = cells_of(tmp_path, 2)
    submission = _RayScheduler(Ray(), tmp_path).submit([Job(tmp_path, (cell.key,)) for cell in cells], 0)
    handles = next(submission)
    assert not ray.actors
    assert _RayScheduler(Ray(), tmp_path).alive(handles) == set()
    assert list(submission) == []
    assert _RayScheduler(Ray(), tmp_path).alive(handles) == set(handles)
    scheduler = _RayScheduler(Ray(), tmp_path)
    scheduler.cancel(handles)
    assert scheduler.alive(handles) == set()
    assert all(scheduler.result(handle).canceled for handle in handles)


def test_further_tasks_go_to_the_same_actor_under_numbers_of_their_own(ray: FakeRay, tmp_path: Path) -> None:
    cells, scheduler = cells_of(tmp_path, 3), _RayScheduler(Ray(), tmp_path)
    for part in (cells[:2], cells):
        loop = SchedulerLoop(scheduler, part, RunOptions(tmp_path, 0))
        loop.submit()
    handles = LaunchFile(tmp_path).handles()
    assert [handles[cell.key].rpartition(":")[2] for cell in cells] == ["0", "1", "2"]
    assert len(ray.actors) == 1


def test_a_demand_that_no_node_meets_is_said(ray: FakeRay, tmp_path: Path) -> None:
    scheduler = _RayScheduler(Ray(gpus=8, memory=4), tmp_path)
    (handles,) = scheduler.submit([Job(tmp_path, ("a",), "cuda")], 0)
    ray.machines = [
        {"Alive": True, "Resources": {"CPU": 4.0, "GPU": 2.0, "memory": 2.0**33}},
        {"Alive": False, "Resources": {"CPU": 4.0, "GPU": 8.0, "memory": 2.0**40}},
    ]
    said = scheduler.why_waiting(handles)
    assert "the 1 CPU cores, 8 GPUs, 4 GiB that a cell asks for (at most: 4 CPU cores, 2 GPUs, 8 GiB)" in said
    assert "ask for less" in said
    ray.machines[1]["Alive"] = True
    assert "is busy" in scheduler.why_waiting(handles)
    scheduler.cancel(handles)
    assert scheduler.why_waiting(handles) == ""


def test_resources_of_different_nodes_do_not_add_up() -> None:
    nodes = [{"CPU": 64.0}, {"CPU": 1.0, "GPU": 8.0}]
    assert "no node of the Ray cluster has the" in why_waiting({"num_cpus": 16, "num_gpus": 8}, nodes)
    assert "is busy" in why_waiting({"num_cpus": 16, "num_gpus": 0}, nodes)


def test_no_password_is_given_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "VCPO_BENCH_VLLM_URL"
    monkeypatch.setenv(name, "http://user:hush@host:8000")
    with pytest.raises(UsageError, match=rf"Ray would write down .* \({name}\).*VCPO_BENCH_VLLM_API_KEY") as problem:
        Ray().check_request()
    assert "hush" not in str(problem.value)
    monkeypatch.setenv(name, "http://host:8000")
    Ray().check_request()
    assert ray_actor.forwarded()[name] == "http://host:8000"


def test_no_key_is_given_to_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCPO_BENCH_VLLM_API_KEY", "hush")
    monkeypatch.setenv("VCPO_BENCH_LEASE_SECONDS", "60")
    given = ray_actor.forwarded()
    assert "hush" not in given.values()
    assert given["VCPO_BENCH_LEASE_SECONDS"] == "60"

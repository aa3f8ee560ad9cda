"""Tasks of Ray: a running cluster, or one that is started on this machine for the time of the grid.

The file is not called `ray`: type checkers would take it for that package.
"""

from __future__ import annotations

import math
import os
import re
import signal
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.pool.memory import available_cores
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult, Scheduler
from vcpo_bench.bench.running.schedulers.ray_actor import (
    ENDED,
    NAMESPACE,
    actor_name,
    forwarded,
    prefix_of,
    start_actor,
)
from vcpo_bench.bench.running.schedulers.ray_demand import why_waiting
from vcpo_bench.bench.running.schedulers.scheduled import ScheduledLauncher
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.files.folders import working_at_root
from vcpo_bench.naming.parameters import integer, number, text

STORE_BYTES = 80 * 2**20
"""Object store of a cluster on this machine: results go through the results folder."""

LEAST = 1e-4
"""Smallest part of a core or a GPU that Ray can count."""
ANSWER_SECONDS = 5.0
STATES_SECONDS = 30.0
"""How long an actor may take to say how its tasks stand. Tasks of one that takes longer count as alive."""
CANCEL_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Ray(ScheduledLauncher):
    """Tasks of a Ray cluster; `--jobs` limits how many run at once."""

    name: ClassVar[str] = "ray"
    summary: ClassVar[str] = "tasks of a Ray cluster, one per cell, with fractions of GPUs"
    bare_value: ClassVar[bool] = False

    address: str = text("", legal="auto, HOST:PORT or local; default: a running cluster, else a local one")
    cpus: float = number(1, above=0)
    gpus: float = number(1, above=0)
    memory: float = number(0, minimum=0)
    retries: int = integer(2, minimum=0)

    def check_installed(self) -> None:
        """Refuse to run without Ray.

        Raises:
            UsageError: It is missing.
        """
        spec = find_spec("ray")
        if spec is None or spec.origin is None:
            raise UsageError(f"--launcher ray: the package ray is not installed; {how_to_install('ray')}")

    def check_request(self) -> None:
        """Refuse what no cluster gives.

        Raises:
            UsageError: Ray takes no such number of GPUs or cores, or a password would be written down.
        """
        forwarded()
        for name, asked in (("cpus", self.cpus), ("gpus", self.gpus)):
            if asked < LEAST:
                raise UsageError(f"--launcher ray({name}={asked:g}): Ray counts in steps of {LEAST:g}; ask for more")
        if self.gpus > 1 and self.gpus % 1:
            raise UsageError(
                f"--launcher ray(gpus={self.gpus:g}): Ray gives a part of one GPU, or whole ones; "
                f"use gpus={math.ceil(self.gpus)}, or at most 1"
            )

    def connect(self, options: RunOptions, detach: bool) -> Scheduler:
        """A running cluster or, unless told to detach, one of our own."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        import ray

        quiet: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": "ERROR"}
        address = self.address or os.environ.get("RAY_ADDRESS", "")
        running = "" if address == "local" else _running(address or "auto")
        if address not in ("", "local") and not running:
            raise UsageError(
                f"--launcher ray: no cluster answers at {address}; its head listens at HOST:6379 by default"
            )
        out = options.out.resolve()
        with _signals_kept(), working_at_root():  # workers import from where it is called
            if running:
                ray.init(address=running, **quiet)
                return _RayScheduler(self, out)
            if detach:
                raise UsageError("--detach: no Ray cluster runs that outlives this command; start one with ray start")
            os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 starves cells beside other work
            _check_fits("cpus", self.cpus, cores := available_cores(), "CPU cores")
            ray.init(
                address="local",
                num_cpus=max(math.ceil(options.jobs * self.cpus), cores),
                include_dashboard=False,
                object_store_memory=STORE_BYTES,
                **quiet,
            )
        return _RayScheduler(self, out, whole=ray.cluster_resources())


def _check_fits(name: str, asked: float, has: float, unit: str) -> None:
    """Refuse what a cluster of our own can never give: Ray would wait for more machines without a word."""
    if asked > has:
        raise UsageError(
            f"--launcher ray({name}={asked:g}): this machine, which would be the whole cluster, has {has:.3g} {unit}; "
            "ask for less, or name a running cluster with address="
        )


def _running(address: str) -> str:
    """`HOST:PORT` of the cluster at an address, if something listens there; else empty.

    Ray itself tries for 13 minutes to reach a cluster that has crashed.
    """
    from ray._private.services import canonicalize_bootstrap_address

    try:
        resolved = str(canonicalize_bootstrap_address(address))
        host, _, port = resolved.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError):  # there is no such address, or nobody listens
        return ""
    return resolved


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Keep the signal handlers of this process, which Ray replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _RayScheduler(Scheduler):
    """Tasks of a Ray cluster. They belong to a detached actor, so that they go on when this process ends.

    A handle is the name of that actor and a number.

    Args:
        launcher: What a task asks for.
        out: The results folder: it has no tasks but those of actors whose names say so.
        whole: All resources of a cluster that was started here; None: machines may be added to it.
    """

    def __init__(self, launcher: Ray, out: Path, whole: Mapping[str, float] | None = None) -> None:
        self._launcher, self._out, self._whole = launcher, out, whole
        self._handle = re.compile(rf"({prefix_of(out)}[0-9a-f]+):([0-9]{{1,9}})")
        self._results: dict[str, JobResult] = {}
        self._actors: dict[str, Any] = {}
        self._current = ""
        self._count = 0

    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        import ray

        asked = self._launcher
        needs = {"num_cpus": asked.cpus, "num_gpus": asked.gpus if jobs[0].device != "cpu" else 0}
        if asked.memory:
            needs["memory"] = int(asked.memory * 2**30)
        if self._whole is not None:
            _check_fits("memory", asked.memory, self._whole.get("memory", 0.0) / 2**30, "GiB of memory for tasks")
            _check_fits("gpus", needs["num_gpus"], self._whole.get("GPU", 0.0), "GPUs")
        if self._actor(self._current) is None:
            self._current = actor_name(self._out)
        numbers = list(range(self._count, self._count + len(jobs)))
        self._count += len(jobs)
        yield [f"{self._current}:{number}" for number in numbers]
        try:
            if self._actors.get(self._current) is None:
                self._actors[self._current] = start_actor(self._current)
            ray.get(self._actors[self._current].submit.remote(numbers, list(jobs), needs, asked.retries, at_once))
        except ray.exceptions.RayError as error:
            problem = str(error).strip().splitlines()[0]
            raise UsageError(f"--launcher ray: the cluster takes no tasks ({problem}); ended cells are kept") from error

    def alive(self, handles: Collection[str]) -> set[str]:
        living = set()
        for name, numbers in self._by_actor(handles).items():
            states = self._states(name, numbers)
            for task in numbers:
                handle = f"{name}:{task}"
                state = "" if states is None else states.get(task, "the actor of its tasks is gone")
                self._results[handle] = JobResult(state == "canceled", state, state == ENDED)
                if not state:
                    living.add(handle)
        return living

    def _states(self, name: str, numbers: Sequence[int]) -> Mapping[int, str] | None:
        """What an actor says of tasks: nothing if it is gone; None: it cannot be reached for a while."""
        import ray

        try:
            actor = self._actor(name)
            if actor is None:
                return {}
            return dict(ray.get(actor.states.remote(numbers), timeout=STATES_SECONDS))
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError):
            return None
        except ray.exceptions.RayError:
            self._actors[name] = None
            return {}

    def result(self, handle: str) -> JobResult:
        return self._results.get(handle, JobResult())

    def why_waiting(self, handles: Collection[str]) -> str:
        import ray

        for name, numbers in self._by_actor(handles).items():
            with suppress(ray.exceptions.RayError, ValueError):  # it cannot be reached now
                if (actor := self._actor(name)) is not None:
                    needs = ray.get(actor.needs.remote(numbers), timeout=ANSWER_SECONDS)
                    return why_waiting(needs, [node["Resources"] for node in ray.nodes() if node["Alive"]])
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        import ray

        calls = [
            actor.cancel.remote(numbers)
            for name, numbers in self._by_actor(handles).items()
            if (actor := self._actor(name)) is not None
        ]
        with suppress(ray.exceptions.RayError):  # tasks that go on end their cells: nothing is wrong
            ray.get(calls, timeout=CANCEL_SECONDS)

    def close(self, done: bool) -> None:
        import ray

        for actor in self._actors.values() if done else ():
            if actor is not None:
                ray.kill(actor)
        ray.shutdown()

    def _by_actor(self, handles: Collection[str]) -> dict[str, list[int]]:
        """Numbers of tasks by the name of their actor; jobs of other launchers and other folders are left out."""
        numbers: dict[str, list[int]] = {}
        for found in filter(None, map(self._handle.fullmatch, handles)):
            numbers.setdefault(found[1], []).append(int(found[2]))
        return numbers

    def _actor(self, name: str) -> Any:
        """The actor of that name; None: it is gone."""
        import ray

        if name and name not in self._actors:
            try:
                self._actors[name] = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                self._actors[name] = None
        return self._actors.get(name)

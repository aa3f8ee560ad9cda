"""Tasks of Ray: a running cluster, or one that is started on this machine for the time of the grid.

The file is not called `ray`: type checkers would take it for that package.
"""

from __future__ import annotations

import math
import os
import signal
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.pool.memory import available_cores
from vcpo_bench.bench.running.schedulers.loop.job import Job
from vcpo_bench.bench.running.schedulers.loop.scheduler import Fate, Scheduler
from vcpo_bench.bench.running.schedulers.ray_actor import ENDED, NAMESPACE, forwarded, keeper_name, make_keeper
from vcpo_bench.bench.running.schedulers.ray_demand import why_waiting
from vcpo_bench.bench.running.schedulers.scheduled import ScheduledLauncher, check_shards
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.naming.parameters import integer, number, text

STORE_BYTES = 80 * 2**20
"""Object store of a cluster on this machine: results go through the results folder."""

LEAST = 1e-4
"""Smallest part of a core or a GPU that Ray can count."""
ANSWER_SECONDS = 5.0
STATES_SECONDS = 30.0
"""How long a keeper may take to say how its tasks stand; a longer silence is no end of them."""
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
        found = find_spec("ray")
        if found is None or found.origin is None:
            raise UsageError(f"--launcher ray: the package ray is not installed; {how_to_install('ray')}")

    def check_request(self, device: str, shards: int) -> None:
        """Refuse what no cluster gives.

        Raises:
            UsageError: Ray takes no such number of GPUs or cores, there are fewer GPUs than shards, or a password
                would be written down.
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
        check_shards(self.name, self.gpus, device, shards)

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
        with _own_signals():
            if running:
                ray.init(address=running, **quiet)
                return _Ray(self)
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
        return _Ray(self, whole=ray.cluster_resources())


def _check_fits(name: str, asked: float, has: float, unit: str) -> None:
    """Refuse what a cluster of our own can never give: Ray would wait for more machines without a word."""
    if asked > has:
        raise UsageError(
            f"--launcher ray({name}={asked:g}): this machine, which would be the whole cluster, has {has:.3g} {unit}; "
            "ask for less, or name a running cluster with address="
        )


def _by_keeper(handles: Collection[str]) -> dict[str, list[int]]:
    """Numbers of tasks by the name of their keeper."""
    found: dict[str, list[int]] = {}
    for handle in filter(_is_ours, handles):
        name, _, number = handle.rpartition(":")
        found.setdefault(name, []).append(int(number))
    return found


def _is_ours(handle: str) -> bool:
    """Whether a handle is of a Ray keeper; those of another launcher that had the folder before say nothing here."""
    name, _, number = handle.rpartition(":")
    return bool(name) and number.isdecimal()


def _running(address: str) -> str:
    """`HOST:PORT` of the cluster at an address, if something listens there; else empty.

    Ray itself tries for 13 minutes to reach a cluster that has crashed.
    """
    from ray._private.services import canonicalize_bootstrap_address

    try:
        found = str(canonicalize_bootstrap_address(address))
        host, _, port = found.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError):  # there is no such address, or nobody listens
        return ""
    return found


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray replaces what this process does when it is told to stop."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class _Ray(Scheduler):
    """The tasks belong to an actor, the keeper, so that they go on when this process ends.

    A handle is the keeper's name and a number.

    Args:
        launcher: What a task asks for.
        whole: All that a cluster of our own has; None: others may add machines.
    """

    def __init__(self, launcher: Ray, whole: Mapping[str, float] | None = None) -> None:
        self._launcher, self._whole = launcher, whole
        self._fates: dict[str, Fate] = {}
        self._keepers: dict[str, Any] = {}
        self._own = ""
        self._count = 0

    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        import ray

        ours = self._launcher
        needs = {"num_cpus": ours.cpus, "num_gpus": ours.gpus if jobs[0].device != "cpu" else 0}
        if ours.memory:
            needs["memory"] = int(ours.memory * 2**30)
        if self._whole is not None:
            _check_fits("memory", ours.memory, self._whole.get("memory", 0.0) / 2**30, "GiB of memory for tasks")
            _check_fits("gpus", needs["num_gpus"], self._whole.get("GPU", 0.0), "GPUs")
        if self._keeper(self._own) is None:
            self._own = keeper_name()
        numbers = list(range(self._count, self._count + len(jobs)))
        self._count += len(jobs)
        yield [f"{self._own}:{number}" for number in numbers]
        try:
            if self._keepers.get(self._own) is None:
                self._keepers[self._own] = make_keeper(self._own)
            ray.get(self._keepers[self._own].submit.remote(numbers, list(jobs), needs, ours.retries, at_once))
        except ray.exceptions.RayError as error:
            said = str(error).strip().splitlines()[0]
            raise UsageError(f"--launcher ray: the cluster takes no tasks ({said}); ended cells are kept") from error

    def alive(self, handles: Collection[str]) -> set[str]:
        found = set()
        for name, numbers in _by_keeper(handles).items():
            states = self._states(name, numbers)
            for one in numbers:
                handle = f"{name}:{one}"
                state = "" if states is None else states.get(one, "its keeper is gone")
                self._fates[handle] = Fate(state == "canceled", state, state == ENDED)
                if not state:
                    found.add(handle)
        return found

    def _states(self, name: str, numbers: Sequence[int]) -> Mapping[int, str] | None:
        """What a keeper says of tasks: nothing if it is gone; None: it cannot be reached for a while."""
        import ray

        try:
            keeper = self._keeper(name)
            if keeper is None:
                return {}
            return dict(ray.get(keeper.states.remote(numbers), timeout=STATES_SECONDS))
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError):
            return None
        except ray.exceptions.RayError:
            self._keepers[name] = None
            return {}

    def fate(self, handle: str) -> Fate:
        return self._fates.get(handle, Fate())

    def why_waiting(self, handles: Collection[str]) -> str:
        import ray

        for name, numbers in _by_keeper(handles).items():
            with suppress(ray.exceptions.RayError, ValueError):  # it cannot be reached now
                if (keeper := self._keeper(name)) is not None:
                    needs = ray.get(keeper.needs.remote(numbers), timeout=ANSWER_SECONDS)
                    return why_waiting(needs, [node["Resources"] for node in ray.nodes() if node["Alive"]])
        return ""

    def cancel(self, handles: Collection[str]) -> None:
        import ray

        calls = [
            keeper.cancel.remote(numbers)
            for name, numbers in _by_keeper(handles).items()
            if (keeper := self._keeper(name)) is not None
        ]
        with suppress(ray.exceptions.RayError):  # tasks that go on end their cells: nothing is wrong
            ray.get(calls, timeout=CANCEL_SECONDS)

    def close(self, done: bool) -> None:
        import ray

        for keeper in self._keepers.values() if done else ():
            if keeper is not None:
                ray.kill(keeper)
        ray.shutdown()

    def _keeper(self, name: str) -> Any:
        """The keeper of that name; None: it is gone."""
        import ray

        if name and name not in self._keepers:
            try:
                self._keepers[name] = ray.get_actor(name, namespace=NAMESPACE)
            except ValueError:
                self._keepers[name] = None
        return self._keepers.get(name)

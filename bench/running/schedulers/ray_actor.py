"""The owner of Ray tasks: a detached actor, which outlives the process that submits them."""

from __future__ import annotations

import os
import threading
import time
import traceback
import uuid
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vcpo_bench.bench.running.schedulers.loop.job import Job, run_job
from vcpo_bench.bench.running.schedulers.loop.launch_file import tag_of
from vcpo_bench.bench.samplers.vllm_engine.address import without_secrets
from vcpo_bench.errors import UsageError

NAMESPACE = "vcpo-bench"
FORWARDED = ("VCPO_BENCH_", "OMP_NUM_THREADS", "PYTHONPATH")
"""Beginnings of the environment variables that tasks get from the process that submits them. Ray writes them down."""
_SECRET = "_API_KEY"
"""End of the variables that tasks do not get: their nodes must have them."""

ENDED = "ended"
"""State of a task that returned by itself."""
POLL_SECONDS = 1.0
_HEAD = {"node:__internal_head__": 0.001}
"""A resource that only the head of a cluster has: the cluster ends with that node, and so may the actor."""


class TaskActor:
    """Owns tasks, and knows how they ended.

    Args:
        name: Its name; with a number behind it, this is the handle of a task.
        place: Working directory of its tasks, where their nodes have it.
    """

    def __init__(self, name: str, place: str) -> None:
        self._name, self._place = name, place
        self._lock = threading.Lock()
        self._running: dict[int, Any] = {}
        self._canceled: list[Any] = []
        self._waiting: deque[tuple[int, Job, dict[str, Any]]] = deque()
        self._needs: dict[int, dict[str, float]] = {}
        self._ended: dict[int, str] = {}
        self._at_once = 0
        threading.Thread(target=self._keep_starting, daemon=True).start()

    def submit(
        self, numbers: Sequence[int], jobs: Sequence[Job], needs: Mapping[str, float], retries: int, at_once: int
    ) -> None:
        """Take jobs, but for those that were canceled before they arrived.

        Args:
            numbers: Their numbers, chosen and written down by the process that submits them.
            jobs: The jobs.
            needs: What each needs: `num_cpus`, `num_gpus`, `memory` in bytes.
            retries: How often Ray starts a task again whose worker or node died.
            at_once: Most tasks to have running; 0: as many as fit.
        """
        options = {"max_retries": retries, "retry_exceptions": False, **needs}
        with self._lock:
            self._at_once = at_once
            self._needs |= {number: dict(needs) for number in numbers}
            pairs = zip(numbers, jobs, strict=True)
            self._waiting.extend((number, job, options) for number, job in pairs if number not in self._ended)

    def states(self, numbers: Collection[int]) -> dict[int, str]:
        """How tasks stand. Empty: the task waits or runs; `canceled`; else how it ended. Unknown tasks are left out."""
        with self._lock:
            self._start()
            return {number: self._ended.get(number, "") for number in numbers if number in self._needs}

    def needs(self, numbers: Collection[int]) -> dict[str, float]:
        """Resources of the first of these tasks that has not ended; empty: all have."""
        with self._lock:
            return next((self._needs[number] for number in sorted(numbers) if number not in self._ended), {})

    def cancel(self, numbers: Collection[int]) -> None:
        """Cancel tasks, whether they wait, run, or have not been submitted yet."""
        with self._lock:
            self._waiting = deque(task for task in self._waiting if task[0] not in numbers)
            self._canceled += [self._running.pop(number) for number in numbers if number in self._running]
            for number in numbers:
                self._ended.setdefault(number, "canceled")
            self._end_canceled()

    def _keep_starting(self) -> None:
        """Start waiting tasks also while nobody asks, whatever goes wrong with one of them."""
        while True:
            try:
                with self._lock:
                    self._end_canceled()
                    self._start()
            except Exception:  # the cluster does not answer: it may answer the next time
                traceback.print_exc()
            time.sleep(POLL_SECONDS)

    def _end_canceled(self) -> None:
        """Cancel what still runs, again and again: one call can be lost on a busy cluster."""
        import ray

        if self._canceled:
            _, self._canceled = ray.wait(self._canceled, num_returns=len(self._canceled), timeout=0)
        for reference in self._canceled:
            ray.cancel(reference, force=True)

    def _start(self) -> None:
        """Note which tasks have ended, and start others in their place; one that Ray does not take has ended."""
        import ray

        by_reference = {reference: number for number, reference in self._running.items()}
        if by_reference:
            ready, _ = ray.wait(list(by_reference), num_returns=len(by_reference), timeout=0)
            for reference in ready:
                number = by_reference[reference]
                self._ended[number] = _ending(reference)
                del self._running[number]
        while self._waiting and (not self._at_once or len(self._running) < self._at_once):
            number, job, options = self._waiting.popleft()
            try:
                task = ray.remote(_run).options(name=f"cell {job.keys[0]}", **options)
                self._running[number] = task.remote(job, f"{self._name}:{number}", self._place)
            except Exception as problem:
                self._ended[number] = _last_line(problem)


def forwarded() -> dict[str, str]:
    """Environment variables for tasks.

    Raises:
        UsageError: One holds a user and a password, which anybody who sees the cluster could read.
    """
    variables = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
    for name, value in variables.items():
        if "://" in value and without_secrets(value) != value:
            raise UsageError(
                f"--launcher ray: Ray would write down the user and password in --url ({name}); give the address "
                "without them, and have ray start find VCPO_BENCH_VLLM_API_KEY on every node"
            )
    return {"OMP_NUM_THREADS": "1"} | {name: value for name, value in variables.items() if not name.endswith(_SECRET)}


def actor_name(out: Path) -> str:
    """A name that no other actor has.

    Args:
        out: The results folder, as an absolute path.
    """
    return f"{prefix_of(out)}{uuid.uuid4().hex[:12]}"


def prefix_of(out: Path) -> str:
    """How the names of all actors of a results folder begin."""
    return f"tasks-{tag_of(out)}-"


def start_actor(name: str) -> Any:
    """Start an actor of that name; returns Ray's handle of it."""
    import ray

    kind = ray.remote(TaskActor).options(
        name=name,
        namespace=NAMESPACE,
        lifetime="detached",
        num_cpus=0,
        resources=_HEAD,
        runtime_env={"env_vars": forwarded()},
    )
    return kind.remote(name, os.getcwd())


def _run(job: Job, name: str, place: str) -> int:
    """Body of a task."""
    with suppress(OSError):  # this node has no such folder
        os.chdir(place)
    return run_job(job, name)


def _ending(reference: Any) -> str:
    import ray

    try:
        ray.get(reference)
    except ray.exceptions.TaskCancelledError:
        return "canceled"
    except Exception as problem:  # whatever a task raises: it has ended
        return _last_line(problem)
    return ENDED


def _last_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[-1]

"""verl's processes of a cell: a child of this process, or a job of a Ray cluster."""

from __future__ import annotations

import shlex
import subprocess
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.errors import UsageError

ENTRY = ("-m", "verl.trainer.main_ppo")
LAST_WORDS_SECONDS = 60.0
"""How long verl may take to end after its last line."""


class VerlProcess(ABC):
    """A run of verl.

    Attributes:
        ending: How it has ended, in words; empty: it has not.
    """

    ending = ""

    @abstractmethod
    def ended(self) -> bool:
        """Whether it has ended; sets `ending`."""

    @abstractmethod
    def stop(self) -> None:
        """End it, if it has not ended."""


class Child(VerlProcess):
    """A child of this process; without a cluster, verl starts a Ray of its own."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen([sys.executable, *ENTRY, *arguments])

    def ended(self) -> bool:
        """See `VerlProcess.ended`."""
        if (code := self._process.poll()) is not None:
            self.ending = f"exit code {code}"
        return bool(self.ending)

    def stop(self) -> None:
        """See `VerlProcess.stop`."""
        try:
            self._process.wait(LAST_WORDS_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class RayJob(VerlProcess):
    """A job of a Ray cluster. One of the same cell that a killed driver has left is stopped first.

    Args:
        client: A `JobSubmissionClient` of the cluster.
        key: Key of the cell.
        arguments: Arguments of verl's command line.
    """

    def __init__(self, client: Any, key: str, arguments: Sequence[str]) -> None:
        self._client, prefix = client, f"vcpo-bench-{key}-"
        for job in client.list_jobs():
            if (job.submission_id or "").startswith(prefix) and not job.status.is_terminal():
                client.stop_job(job.submission_id)
        self._name = prefix + uuid.uuid4().hex[:8]
        command = shlex.join(["python", *ENTRY, *arguments])
        client.submit_job(entrypoint=command, submission_id=self._name)

    def ended(self) -> bool:
        """See `VerlProcess.ended`."""
        status = self._client.get_job_status(self._name)
        if status.is_terminal():
            self.ending = f"Ray job {self._name}: {status.value}"
        return bool(self.ending)

    def stop(self) -> None:
        """See `VerlProcess.stop`."""
        if not self.ended():
            self._client.stop_job(self._name)


@contextmanager
def start(config: CellConfig, key: str, arguments: Sequence[str]) -> Iterator[VerlProcess]:
    """Start verl where the cell's trainer says; it has ended when the block ends.

    Raises:
        UsageError: No cluster answers.
    """
    address = config.parts.trainer.address  # type: ignore[attr-defined]
    if address:
        from ray.job_submission import JobSubmissionClient

        try:
            client = JobSubmissionClient(address)
        except ConnectionError as error:
            raise UsageError(
                f"--trainer {config.trainer}: no Ray cluster answers at {address}; it is the URL of the dashboard"
            ) from error
        verl: VerlProcess = RayJob(client, key, arguments)
    else:
        verl = Child(arguments)
    try:
        yield verl
    finally:
        verl.stop()

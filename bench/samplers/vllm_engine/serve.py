"""Starting `vllm serve` with the settings that a sampler needs, for checks and tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from vcpo_bench.bench.python_processes import SAFE_PATH
from vcpo_bench.bench.samplers.vllm_engine.http_client import Client
from vcpo_bench.bench.samplers.vllm_engine.releases import ENVIRONMENT, require

STARTUP_SECONDS = 900.0
FLAGS = (
    "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm", "--no-enable-prefix-caching",
    "--no-async-scheduling",
)  # fmt: skip
"""Flags that every server used for training needs."""
SCALE_OUT = (0, 32)
"""First release that takes token ids only with `--enable-scale-out`."""


class VllmServer:
    """A server on a free port of this machine; a context manager that stops it.

    Args:
        model: Folder of the model, with untied embeddings.
        log: File for its output.
        options: Further flags.
        environment: Further environment variables.
    """

    def __init__(
        self, model: Path, log: Path, options: tuple[str, ...] = (), environment: dict[str, str] | None = None
    ) -> None:
        release = require()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url, self._log = f"http://127.0.0.1:{port}", log
        scale_out = ("--enable-scale-out",) if release >= SCALE_OUT else ()
        program = Path(sys.executable).with_name("vllm")
        self._command = [str(program), "serve", str(model), "--host", "127.0.0.1", "--port", str(port)]
        self._command += [*FLAGS, *scale_out, *options]
        own = {name: value for name, value in ENVIRONMENT.items() if name != "VLLM_ENABLE_V1_MULTIPROCESSING"}
        self._environment = own | {"VLLM_SERVER_DEV_MODE": "1", SAFE_PATH: "1"} | dict(os.environ) | (environment or {})
        self.start()

    def start(self) -> None:
        """Start it, at the same address as before if it was killed."""
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            RuntimeError: It exited or took too long; the message is the end of its log.
        """
        client, limit = Client(self.url), time.monotonic() + STARTUP_SECONDS
        while not client.wait(0.0):
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError(f"vllm serve did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.5)

    def kill(self) -> None:
        """Kill it at once, with the engine's process, which would outlive it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

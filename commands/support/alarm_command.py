"""Runs the user's command at an alarm. What stands in the log reaches it as environment variables only."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from vcpo_bench.commands.support.say import say_aside

if TYPE_CHECKING:
    from vcpo_bench.analysis.watching import RunEvent

PREFIX = "VCPO_BENCH_"
_LAST_WAIT = 60.0
"""Seconds that commands still running at the end are waited for."""


class AlarmCommand:
    """Starts a command at each event and does not wait for it.

    Args:
        command: A line for `sh`; empty: nothing is run.
        run: What is watched, for the environment.

    Attributes:
        failed: Commands that ended with an exit code other than 0.
    """

    def __init__(self, command: str, run: str) -> None:
        self._command, self._run = command, run
        self._running: list[subprocess.Popen[bytes]] = []
        self.failed = 0

    def start(self, event: RunEvent) -> None:
        """Run it for one event. Its output goes to our error output."""
        self.reap()
        if not self._command:
            return
        self._running.append(
            subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                env=os.environ | environment(event, self._run),
                stdin=subprocess.DEVNULL,
                stdout=2,
                start_new_session=True,  # a Ctrl-C that ends the watching does not end the message half-way
            )
        )

    def reap(self) -> None:
        """Report commands that ended badly."""
        still = []
        for process in self._running:
            code = process.poll()
            if code is None:
                still.append(process)
            elif code:
                self.failed += 1
                say_aside(f"the alarm command ended with {code}")
        self._running = still

    def finish(self) -> None:
        """Wait a while for those that still run; what takes longer is left to itself."""
        for process in self._running:
            try:
                process.wait(_LAST_WAIT)
            except subprocess.TimeoutExpired:
                say_aside("an alarm command is still running; it is not waited for")
                process.returncode = 0  # nobody asks any more: no warning when the object goes
        self.reap()


def environment(event: RunEvent, run: str) -> dict[str, str]:
    """What an event looks like to the command: variables that begin with `PREFIX`."""
    facts = {
        "EVENT": event.kind,
        "RUN": run,
        "STEP": f"{event.step:.15g}",
        "OLD": "1" if event.old else "0",
        "TEXT": event.text,
    }
    if event.alarm is not None:
        detector = event.alarm.calibration.detector
        facts |= {
            "DETECTOR": detector.text,
            "SIGNAL": detector.signal,
            "SCORE": repr(event.alarm.score),
            "THRESHOLD": repr(detector.threshold),
        }
    return {PREFIX + name: value.replace("\0", "") for name, value in facts.items()}

"""Clocks of machines differ: nothing but the silence of a claim counts, by the clock of the one who watches."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_scheduler import cells_of
from patience import within
from pool_jobs import Log

from vcpo_bench.bench.running.schedulers.loop.results_watch import ResultsWatch
from vcpo_bench.files import claims
from vcpo_bench.files.claims import Claim

LEASE_SECONDS = 5.0
HOLDER = """
import sys, time
skew, real, since_boot = float(sys.argv[2]), time.time, time.monotonic
time.time, time.monotonic = lambda: real() + skew, lambda: since_boot() + skew
from pathlib import Path
from vcpo_bench.files import claims, lock_holders
lock_holders._machine = lambda: "another one"
claims.LEASE_SECONDS = float(sys.argv[3])
with claims.Claim(Path(sys.argv[1]), job="1_0"):
    print("held", flush=True)
    sys.stdin.read()
"""
"""A worker of another machine, whose clocks are off."""


@pytest.mark.slow
@pytest.mark.parametrize("skew", [-86400.0, 86400.0], ids=["a day behind", "a day ahead"])
def test_heartbeats_count_whatever_clock_their_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", LEASE_SECONDS)
    (cell,) = cells_of(tmp_path, 1)
    folder = tmp_path / "cells" / f"{cell.key}.partial"
    command = [sys.executable, "-c", HOLDER, str(folder), str(skew), str(LEASE_SECONDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "held\n"
        watch = ResultsWatch(tmp_path / "cells", [cell])
        beats = set()
        until = time.monotonic() + 1.5 * LEASE_SECONDS
        while time.monotonic() < until:
            watch.poll(Log())
            found = watch.claim(cell.key)
            assert found is not None
            beats.add(found.beat)
            time.sleep(0.1)
        assert len(beats) > 3
        worker.kill()
    deadline = time.monotonic() + within(60)
    while watch.claim(cell.key):
        assert time.monotonic() < deadline, "a claim without heartbeats is held for ever"
        time.sleep(0.1)
    with Claim(folder):
        pass

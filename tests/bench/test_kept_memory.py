import subprocess
import sys

import pytest

from vcpo_bench.bench import devices

COUNT_FAULTS = """
import resource, sys
import numpy as np
from vcpo_bench.bench.devices import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def use():
    # sizes that grow, so that the default threshold cannot adapt to them
    for megabytes in range(33, 43):
        np.ones(megabytes << 17)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(mode: str) -> int:
    done = subprocess.run([sys.executable, "-c", COUNT_FAULTS, mode], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the setting is glibc's")
def test_freed_memory_is_used_again() -> None:
    assert faults("keep") < 0.1 * faults("default")


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.sys, "platform", "darwin")
    assert devices.keep_freed_memory() is False

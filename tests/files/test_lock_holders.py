"""Who holds a claim: processes of this machine that have ended count as gone, others never."""

import os
import subprocess
import sys
from dataclasses import replace

from vcpo_bench.files.lock_holders import this_process


def test_only_processes_of_this_machine_count_as_gone() -> None:
    ours = this_process()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not ours.is_gone
    assert replace(ours, pid=ended.pid).is_gone
    assert replace(ours, started="1").is_gone, "another process has its number now"
    assert not replace(ours, pid=ended.pid, machine="elsewhere").is_gone
    assert replace(ours, host="elsewhere").described() == f"process {os.getpid()} on elsewhere"

"""A real Slurm of one node on this machine, from packages that were only unpacked."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from launched_grids import wait_for

CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={next_port}
AuthType=auth/munge
AuthInfo=socket={here}/munge.sock
CryptoType=crypto/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/slurmd.log
PluginDir={root}/usr/lib/x86_64-linux-gnu/slurm-wlm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MaxArraySize=1001
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=cpu Nodes=ALL Default=YES MaxTime=60 State=UP
"""


class SlurmCluster:
    """The daemons of the packages unpacked in `root`; `here`, a short path, is for their sockets, logs and state."""

    def __init__(self, root: Path, here: Path) -> None:
        self._root, self._here, self._running = root, here, dict[str, subprocess.Popen[bytes]]()
        host, port = socket.gethostname().split(".")[0], _free_port()
        for name in ("state", "spool"):
            (here / name).mkdir()
        text = CONFIG.format(host=host, port=port, next_port=_free_port(), here=here, root=root)
        (here / "slurm.conf").write_text(text)
        (here / "munge.key").write_bytes(os.urandom(1024))
        (here / "munge.key").chmod(0o400)
        libraries = root / "usr/lib/x86_64-linux-gnu"
        self.environment = {
            "LD_LIBRARY_PATH": f"{libraries}:{libraries / 'slurm-wlm'}",
            "SLURM_CONF": str(here / "slurm.conf"),
            "PATH": f"{root / 'usr/bin'}:{root / 'usr/sbin'}:{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Start all daemons, and wait until the node takes jobs."""
        files = {"socket": "munge.sock", "key-file": "munge.key", "pid-file": "munged.pid", "seed-file": "munge.seed"}
        flags = [f"--{flag}={self._here / name}" for flag, name in files.items()]
        self._start("munged", "--foreground", "--force", *flags, f"--log-file={self._here / 'munged.log'}")
        wait_for("munged answers", (self._here / "munge.sock").exists, 30)
        self._start("slurmctld-wlm", "-D")
        self.start_node()

    def start_node(self) -> None:
        """Start the daemon of the node."""
        self._start("slurmd-wlm", "-D", "-d", str(self._root / "usr/sbin/slurmstepd-wlm"))
        wait_for("the node is idle", lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%t"), 60)

    def lose_node(self, workers: Collection[int]) -> None:
        """End everything on the node at once, as a loss of power would; its disk does not outlive that."""
        self._running.pop("slurmd-wlm").kill()
        for pid in {*workers, *self._steps()}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for("the controller misses the node", lambda: "down" in self.ask("sinfo", "--noheader", "--format=%t"))
        shutil.rmtree(self._here / "spool")
        (self._here / "spool").mkdir()

    def hurry(self) -> None:
        """Start jobs that were queued again now: Slurm waits two minutes before it does."""
        wait_for("a job was queued again", lambda: self.jobs("PENDING"))
        wait_for("it runs", self._hurried)

    def _hurried(self) -> bool:
        columns = "--format=%i %V %r"  # number, when it was queued, why it waits
        waiting = self.ask("squeue", "--noheader", "--array", "--states=PENDING", columns).splitlines()
        for job, queued, reason in (line.split(maxsplit=2) for line in waiting):
            # only now: an update of a job that is about to start can crash slurmctld 22.05; and a job that starts in
            # the second in which its first run was ended is killed, its credential being revoked
            if reason == "BeginTime" and datetime.now() - datetime.fromisoformat(queued) > timedelta(seconds=2):
                self.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
        return not waiting

    def _steps(self) -> list[int]:
        """Processes of this cluster, not of another one, that watch over jobs."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has just ended
                ours = str(self._here).encode() in (folder / "environ").read_bytes()
                if ours and (folder / "comm").read_text().startswith("slurmstepd"):
                    found.append(int(folder.name))
        return found

    def ask(self, *command: str) -> str:
        done = subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True)
        return done.stdout.strip()

    def jobs(self, states: str = "PENDING,RUNNING") -> list[str]:
        """Numbers of the jobs, one per task of an array."""
        return self.ask("squeue", "--noheader", "--array", f"--states={states}", "--format=%i").split()

    def stop(self) -> None:
        self.ask("scancel", "--user=root")
        for process in reversed(self._running.values()):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        for pid in self._steps():  # they wait for a controller that is gone
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _start(self, name: str, *arguments: str) -> None:
        with (self._here / f"{name}.out").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [name, *arguments], cwd=self._here, env={**os.environ, **self.environment}, stdout=log, stderr=log
            )  # a daemon that crashes leaves its core where it was started


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])

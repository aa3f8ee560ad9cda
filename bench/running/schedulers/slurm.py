"""Jobs of Slurm, submitted as arrays by submitit. The results folder says what they did; accounting is never asked."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, ClassVar

from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.schedulers.loop.job import Job, run_job
from vcpo_bench.bench.running.schedulers.loop.launch_file import FOLDER, tag_of
from vcpo_bench.bench.running.schedulers.loop.scheduler import JobResult, Scheduler
from vcpo_bench.bench.running.schedulers.scheduled import ScheduledLauncher
from vcpo_bench.bench.running.schedulers.slurm_time_limit import TimeLimit
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.files.folders import made
from vcpo_bench.naming.parameters import integer, number, text

LONGEST_ARRAY = 1000
TIMEOUTS = 10_000
"""How often a job may reach its time limit and be queued again, for as long as its cell gets further."""
ANSWER_SECONDS = 60.0
_ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT", "REVOKED"),
}
_PROGRAMS = ("sbatch", "squeue", "scancel", "srun")
_PYTHON = f"{shlex.quote(sys.executable)} -P"
"""Jobs begin in the working directory, and import nothing from it; see `python_processes`."""
_NUMBER = re.compile(r"[0-9]+(_[0-9]+)?")
"""A job, or one of an array: nothing that `scancel` would take for an option."""


@dataclass(frozen=True, kw_only=True)
class Slurm(ScheduledLauncher):
    """Jobs of a Slurm cluster; `--jobs` limits how many run at once."""

    name: ClassVar[str] = "slurm"
    summary: ClassVar[str] = "jobs of a Slurm cluster, one per cell; the results folder must be on a shared file system"
    bare_value: ClassVar[bool] = False

    partition: str = text("", legal="a partition")
    account: str = text("", legal="an account")
    qos: str = text("", legal="a quality of service")
    constraint: str = text("", legal="features of a node")
    minutes: int = integer(60, minimum=1)
    cpus: int = integer(1, minimum=1)
    gpus: int = integer(1, minimum=1)
    memory: float = number(4, above=0)
    setup: str = text("", legal="a shell line to run before each job, such as: . /shared/setup.sh")
    options: str = text("", legal="more options of sbatch, such as: reservation=name nice=100")
    poll: float = number(15, above=0)

    def check_installed(self) -> None:
        """Refuse to run without submitit or Slurm's programs.

        Raises:
            UsageError: One is missing.
        """
        if find_spec("submitit") is None:
            raise UsageError(f"--launcher slurm: the package submitit is not installed; {how_to_install('slurm')}")
        if missing := [program for program in _PROGRAMS if which(program) is None]:
            raise UsageError(
                f"--launcher slurm: {missing[0]} is not on the PATH; run this on a login node of the cluster"
            )

    def connect(self, options: RunOptions, detach: bool) -> Scheduler:
        """Slurm as its command-line programs reach it."""
        return _SlurmScheduler(self, options.out.resolve())


class _SlurmScheduler(Scheduler):
    """The jobs of one results folder on a cluster, asked about by Slurm's command-line programs."""

    def __init__(self, launcher: Slurm, out: Path) -> None:
        self._launcher, self._out = launcher, out
        self.poll_seconds = launcher.poll
        self._name = f"vcpo-bench-{tag_of(out)}"
        self._ended: dict[str, str] = {}
        self._reasons: dict[str, str] = {}

    def submit(self, jobs: Sequence[Job], at_once: int) -> Iterator[list[str]]:
        import submitit
        from submitit.core.utils import FailedJobError

        if at_once and re.search(r"dependency=\S*\?", self._launcher.options):
            raise UsageError(
                "--launcher slurm: a dependency with ? cannot be joined with the order of arrays under --jobs; drop one"
            )
        arrays = list(_cut(jobs, min(LONGEST_ARRAY, _longest_array())))
        shares = _shares(at_once, len(arrays))
        after = [self._full(len(jobs), at_once)] * len(shares)
        for lane, array in zip(itertools.cycle(range(len(shares))), arrays, strict=False):
            folder = made(self._out, FOLDER, "slurm", uuid.uuid4().hex)  # jobs unpickle what they find there
            executor = submitit.SlurmExecutor(folder, max_num_timeout=TIMEOUTS, python=_PYTHON)
            executor.update_parameters(**self._parameters(jobs[0].device, shares[lane], after[lane]))
            try:
                handles = _submit(executor, [_Task(job, self._launcher.minutes) for job in array])
            except (FailedJobError, subprocess.CalledProcessError) as error:
                answer = " ".join(str(getattr(error, "stderr", "") or error).split())
                raise UsageError(f"--launcher slurm: sbatch refused the jobs: {answer}") from error
            after[lane] = [_array_of(handles[-1])]
            yield handles

    def alive(self, handles: Collection[str]) -> set[str]:
        if not handles:
            return set()
        try:
            return set(handles) & self._living()
        except (OSError, subprocess.SubprocessError):  # the controller is away for a while: nothing is known to end
            return set(handles)

    def orphans(self, known: Collection[str]) -> set[str]:
        try:
            return self._living() - set(known)
        except (OSError, subprocess.SubprocessError):
            return set()

    def result(self, handle: str) -> JobResult:
        state = self._ended.get(handle, "")
        return JobResult(state.startswith("CANCELLED"), state, state.startswith("COMPLETED"), state == "PREEMPTED")

    def why_waiting(self, handles: Collection[str]) -> str:
        return why_pending(self._reasons[handle] for handle in sorted(handles) if handle in self._reasons)

    def cancel(self, handles: Collection[str]) -> None:
        asked = []
        for part in _cut(sorted(filter(_NUMBER.fullmatch, handles)), LONGEST_ARRAY):
            with suppress(OSError):  # jobs that go on end their cells: nothing is wrong
                asked.append(_begin(["scancel", "--quiet", f"--name={self._name}", *part]))
        for process in asked:  # a process that is told to stop may end before they do
            with suppress(subprocess.TimeoutExpired):
                process.wait(ANSWER_SECONDS)

    def _living(self) -> set[str]:
        """Jobs of the results folder that wait or run. Slurm soon forgets how others ended, so that is kept."""
        listed = ["squeue", "--noheader", "--array", "--states=all", f"--name={self._name}", "--format=%i %T %r"]
        jobs = [line.split(maxsplit=2) for line in _answer(listed).splitlines() if line.strip()]
        living = {job for job, state, *_ in jobs if state not in _ENDED}
        self._ended |= {job: state for job, state, *_ in jobs if job not in living}
        self._reasons = {job: " ".join(reason) for job, state, *reason in jobs if state == "PENDING"}
        return living

    def _full(self, count: int, at_once: int) -> list[str]:
        """The arrays of the folder that must end before more jobs start, where all together are more than may run."""
        if not at_once:
            return []
        try:
            living = self._living()
        except (OSError, subprocess.SubprocessError) as error:
            raise UsageError(f"--launcher slurm: Slurm does not answer ({error})") from error
        return sorted({_array_of(handle) for handle in living}) if len(living) + count > at_once else []

    def _parameters(self, device: str, share: int, after: Sequence[str]) -> dict[str, Any]:
        asked = self._launcher
        options = {key: value for key, _, value in (pair.partition("=") for pair in shlex.split(asked.options))}
        if after:
            of_user = [options["dependency"]] if "dependency" in options else []
            options["dependency"] = ",".join([*of_user, ":".join(["afterany", *after])])
        words = {name: getattr(asked, name) for name in ("partition", "account", "qos", "constraint")}
        return {
            "job_name": self._name,
            "time": asked.minutes,
            "cpus_per_task": asked.cpus,
            "srun_args": [f"--cpus-per-task={asked.cpus}"],  # from Slurm 22.05 on not taken from the job
            "mem": f"{int(asked.memory * 1024)}MB",
            "array_parallelism": share,
            "setup": [asked.setup] if asked.setup else None,
            "additional_parameters": {"requeue": True, **{key: value or True for key, value in options.items()}},
            **{name: value for name, value in words.items() if value},
            **({"gpus_per_node": asked.gpus} if device != "cpu" else {}),
        }


class _Task:
    """What a job unpickles and calls; submitit has Slurm queue it again before its time is up."""

    def __init__(self, job: Job, minutes: int) -> None:
        self._job, self._limit = job, TimeLimit(job, minutes)

    def __call__(self) -> int:
        from submitit import JobEnvironment

        self._limit.begin()
        return run_job(self._job, JobEnvironment().job_id)

    def checkpoint(self) -> Any:
        from submitit.helpers import DelayedSubmission

        self._limit.check()
        return DelayedSubmission(self)


def _shares(at_once: int, arrays: int) -> list[int]:
    """Most jobs to run at once of each lane: arrays of a lane follow one another, those of different lanes do not."""
    if not at_once:
        return [LONGEST_ARRAY] * arrays
    lanes = min(at_once, arrays)
    return [at_once // lanes + (lane < at_once % lanes) for lane in range(lanes)]


def _array_of(handle: str) -> str:
    return handle.partition("_")[0]


def _submit(executor: Any, array: Sequence[_Task]) -> list[str]:
    with executor.batch():
        jobs = [executor.submit(task) for task in array]
    return [job.job_id for job in jobs]


def _cut(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def _longest_array() -> int:
    """Most jobs of an array that this cluster takes."""
    try:
        limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", _answer(["scontrol", "show", "config"]), re.MULTILINE)
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"--launcher slurm: Slurm does not answer ({error})") from error
    return max(1, int(limit[1])) if limit else LONGEST_ARRAY


def _begin(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A program of Slurm that goes on when this process ends."""
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _answer(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=ANSWER_SECONDS).stdout


_BUSY = {"Resources", "Priority", "None"}
_LATER = {"Dependency", "BeginTime", "JobArrayTaskLimit"}
_HELD = {"JobHeldUser", "JobHeldAdmin", "launch failed requeued held"}


def why_pending(reasons: Iterable[str]) -> str:
    """One line on the jobs that wait.

    Args:
        reasons: Reason of each, as `squeue --format=%r` says it.

    Returns:
        The most frequent reasons, and what to do about the first that waiting does not end; empty: no job waits.
    """
    counts = Counter(reasons).most_common()
    if not counts:
        return ""
    listed = ", ".join(f"{reason} ({count})" for reason, count in counts[:3])
    return f"squeue says: {listed}; {_advice([reason for reason, _ in counts])}"


def _advice(reasons: list[str]) -> str:
    stuck = [reason for reason in reasons if reason not in _BUSY | _LATER]
    if not stuck:
        return "they wait for others: nothing is wrong" if _LATER & {*reasons} else "the cluster is busy: they wait"
    if stuck[0] in _HELD:
        return "held jobs wait until scontrol release JOB, with a number that squeue lists"
    return (
        f"{stuck[0]} may never change: press Ctrl-C, correct --launcher-config, and give the command again "
        "(scontrol show job JOB says what a job asks for)"
    )

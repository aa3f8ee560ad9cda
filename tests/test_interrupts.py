"""SIGINT and SIGTERM at any instant: one line, exit code 130 or 143, no traceback."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import within

from vcpo_bench.interrupts import EXIT_CODES, GRACE_SECONDS

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
SOON = "interrupts.GRACE_SECONDS = 0.2\n"
WORK = {
    "plain": "time.sleep(30)",
    "wrapped in another error": "try:\n time.sleep(30)\nexcept BaseException: raise RuntimeError('import failed')",
    "swallowed in a destructor": "class C:\n def __del__(self): time.sleep(30)\nC()\ntime.sleep(30)",
    "a library that leaves": "try:\n time.sleep(30)\nexcept BaseException: sys.exit(0)",
    "swallowed": "try:\n time.sleep(30)\nexcept BaseException: pass",
    "hangs as it unwinds": f"{SOON}try:\n time.sleep(30)\nfinally: time.sleep(30)",
    "computes as it unwinds": f"{SOON}try:\n time.sleep(30)\nfinally:\n while True: pass",
    "in a library that waits": f"{SOON}import ctypes\nmutex = ctypes.create_string_buffer(64)\n"
    "for _ in range(2): ctypes.CDLL(None).pthread_mutex_lock(mutex)",
    "in a library that computes": f"{SOON}import sqlite3\nendless = 'WITH RECURSIVE c(x) AS "
    "(SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'\nsqlite3.connect('').execute(endless).fetchone()",
    "a thread that fails": "try:\n time.sleep(30)\nfinally:\n"
    " t = threading.Thread(target=lambda: 1 / 0)\n t.start()\n t.join()",
}


def started(code: list[str], **more: object) -> subprocess.Popen[bytes]:
    """A process that has set up its handlers, in a group of its own."""
    environment = {**os.environ, **{str(name): str(value) for name, value in more.items()}}
    process = subprocess.Popen(
        [sys.executable, *code],
        start_new_session=True,
        env=environment,
        # a shell that runs the tests in the background has interrupts ignored, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + within(30)
    while not _catches(process.pid) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    return process


def _catches(pid: int) -> bool:
    """Whether SIGTERM, which Python itself leaves alone, has a handler."""
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(mask >> (signal.SIGTERM - 1) & 1)


def check_end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    _, errors = process.communicate(timeout=within(60))
    assert process.returncode == EXIT_CODES[number], errors.decode()
    lines = errors.decode().splitlines()
    assert len(lines) == 1, errors.decode()
    assert lines[0].startswith(WORDS[number])


def check_end_of_run(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """As `check_end`; a run whose cells have ended says what came out, and may be done before the signal comes."""
    output, errors = process.communicate(timeout=within(60))
    said = errors.decode()
    done = process.returncode == 0
    assert done or process.returncode == EXIT_CODES[number], said
    assert said.splitlines()[-1].startswith("next: vcpo-bench report" if done else WORDS[number]), said
    assert "Traceback" not in said
    if b"final reward" not in output:
        assert len(said.splitlines()) == 1, said


linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads signal masks from /proc")


@linux
@pytest.mark.parametrize("work", WORK)
def test_whatever_happens_to_the_exception(work: str) -> None:
    code = f"import sys, threading, time\nfrom vcpo_bench import interrupts\ndef work():\n{_indented(WORK[work])}\n"
    process = started(["-c", f"{code}interrupts.run_guarded(work)"])
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    check_end(process, signal.SIGINT)


def test_two_seconds_are_promised() -> None:
    assert GRACE_SECONDS < 2.0


def _indented(text: str) -> str:
    return "\n".join(f" {line}" for line in text.splitlines())


@linux
def test_a_second_signal_ends_it_at_once() -> None:
    code = (
        "import time\nfrom vcpo_bench import interrupts\ndef work():\n try: time.sleep(30)\n finally: time.sleep(30)\n"
    )
    process = started(["-c", f"{code}interrupts.run_guarded(work)"])
    for _ in range(2):
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    check_end(process, signal.SIGTERM)
    assert time.monotonic() - began < 5


@linux
def test_after_the_work_there_is_nothing_to_stop() -> None:
    code = "import atexit, time\nfrom vcpo_bench import interrupts\natexit.register(time.sleep, 0.5)\n"
    process = started(["-c", f"{code}interrupts.run_guarded(lambda: print('done', flush=True))"])
    assert process.stdout is not None
    assert process.stdout.readline() == b"done\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=within(30))
    assert (process.returncode, errors) == (0, b"")


@linux
def test_a_signal_ignored_by_the_parent_stays_ignored() -> None:
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nfrom vcpo_bench import interrupts\n"
    process = started(["-c", f"{code}interrupts.run_guarded(lambda: time.sleep(0.5))"])
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=within(30))
    assert (process.returncode, errors) == (0, b"")


@linux
@pytest.mark.parametrize("number", list(EXIT_CODES))
@pytest.mark.parametrize("delay", [0.0, 0.15])
def test_the_command_while_it_imports(number: signal.Signals, delay: float) -> None:
    process = started(["-m", "vcpo_bench", "ls", "methods"])
    time.sleep(delay)
    os.killpg(process.pid, number)
    check_end(process, number)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("regime", ["fifo", "async"])
def test_a_grid_at_random_instants(tmp_path: Path, regime: str) -> None:
    """Imports, start of workers and of samplers, training, scoreboard: a signal to the whole process group."""
    count = int(os.environ.get("INTERRUPTS", "6"))
    chance = random.Random(count)
    grid = [
        "--methods", "clip", "--staleness", "2", "--seeds", "2", "--task", "walk-eos", "--steps", "40", "--jobs", "2",
    ]  # fmt: skip
    for attempt in range(count):
        number = chance.choice(list(EXIT_CODES))
        out = ["--regime", regime, "--out", str(tmp_path / str(attempt))]
        process = started(["-m", "vcpo_bench", "run", *grid, *out])
        time.sleep(chance.uniform(0.0, 20.0) ** 2 / 20)
        os.killpg(process.pid, number)
        check_end_of_run(process, number)


@pytest.mark.parametrize("ignored", [False, True])
def test_while_the_handlers_are_imported_an_interrupt_ends_it_without_a_traceback(ignored: bool) -> None:
    code = (
        "import builtins, os, signal\n"
        "from vcpo_bench.__main__ import main\n"
        f"signal.signal(signal.SIGINT, signal.{'SIG_IGN' if ignored else 'default_int_handler'})\n"
        "real = builtins.__import__\n"
        "def early(name, *rest, **more):\n"
        "    if name == 'vcpo_bench.interrupts': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return real(name, *rest, **more)\n"
        "builtins.__import__ = early\n"
        "import sys; sys.argv = ['vcpo-bench', '--version']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=within(60), check=False)
    assert (done.returncode, done.stderr) == (0 if ignored else -signal.SIGINT, b"")

"""`vcpo-bench watch` beside a process that writes the log."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call, refused
from foreign_runs import planted, rows_of, write_jsonl

from vcpo_bench.analysis.watching import RunEvent
from vcpo_bench.commands.support.alarm_command import environment


def test_a_growing_log_raises_each_alarm_once_until_ctrl_c(tmp_path: Path) -> None:
    log, go, heard = tmp_path / "run.jsonl", tmp_path / "go", tmp_path / "heard"
    note = f'echo "$VCPO_BENCH_EVENT $VCPO_BENCH_SIGNAL $VCPO_BENCH_STEP $VCPO_BENCH_OLD" >> {heard}'
    command = [sys.executable, "-m", "vcpo_bench", "watch", str(log), "--every", "0.05", "--alarm-command", note]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert "does not exist" in watching.stderr.readline()
        with writer(log, rows_of(planted("lag and weights"), "vcpo-fork")[:170], go):
            while "VCPO's fork" not in watching.stderr.readline():
                pass
            go.touch()
            first = watching.stdout.readline()
            second = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        rest = watching.stdout.read()
        errors = watching.stderr.read()
    assert watching.returncode == 130
    assert "Traceback" not in errors
    assert "no alarm can come from token_ess: token_ess_ratio is not in the log" in errors
    assert " at step 120; " in first
    lines = [first, second, *rest.splitlines()]
    names = [line.split()[1] for line in lines if line.startswith("ALARM")]
    assert len(names) == len(set(names)) == 2
    assert all("healthy runs" in line and len(line) <= 120 for line in lines if line.startswith("ALARM"))
    assert "measured on" in errors
    assert "not known here" in errors
    assert f"alarm {names[0]} 120 0" in heard.read_text().splitlines()


def test_a_healthy_run_that_ends_is_0(tmp_path: Path) -> None:
    log = write_jsonl(tmp_path / "run.jsonl", rows_of(planted("healthy"), "verl"))
    result = call("watch", str(log), "--every", "0.05", "--idle", "0.2")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing new for 0.2 s, at step 239" in result.stderr


def test_what_happened_before_is_told_as_old(tmp_path: Path) -> None:
    log = write_jsonl(tmp_path / "run.jsonl", rows_of(planted("lag and weights"), "vcpo-fork"))
    result = call(
        "watch",
        str(log),
        "--every",
        "0.05",
        "--idle",
        "0.2",
        "--alarm-command",
        f"echo $VCPO_BENCH_OLD >> {tmp_path}/old",
    )
    assert result.exit_code == 1
    assert set((tmp_path / "old").read_text().split()) == {"1"}


def test_nothing_in_a_log_reaches_the_shell(tmp_path: Path) -> None:
    """Names, paths and values of a log are data of the command, never part of it."""
    folder = tmp_path / "$(touch broken);`touch broken`"
    folder.mkdir()
    evil = f"x; touch {tmp_path}/broken; $(touch {tmp_path}/broken)"
    rows = [{"score": 0.5 if step < 40 else 0.01, evil: 1.0} for step in range(120)]
    log = write_jsonl(folder / "run.jsonl", rows)
    arguments = ["--map", "reward=score", "--every", "0.05", "--idle", "0.2", "--alarm-command"]
    result = call(
        "watch", str(log), *arguments, f'printf "%s\\n" "$VCPO_BENCH_RUN" "$VCPO_BENCH_TEXT" >> {tmp_path}/seen'
    )
    assert result.exit_code == 1, result.output
    assert str(log) in (tmp_path / "seen").read_text()
    assert not (tmp_path / "broken").exists()
    assert not Path("broken").exists()


def test_a_command_that_fails_is_said_and_ends_with_3(tmp_path: Path) -> None:
    log = write_jsonl(tmp_path / "run.jsonl", rows_of(planted("lag and weights"), "vcpo-fork"))
    result = call("watch", str(log), "--every", "0.05", "--idle", "0.2", "--alarm-command", "exit 7")
    assert result.exit_code == 3
    assert "the alarm command ended with 7" in result.stderr
    assert "ALARM" in result.stdout


def test_the_example_that_cancels_a_job_does_so_at_a_new_collapse_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    (told,) = (line for line in page.splitlines() if "scancel" in line)
    command = shlex.split(told)[-1]
    stub = tmp_path / "scancel"
    stub.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/canceled\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for kind in ("alarm", "collapsed"):
        for old in (True, False):
            job = {**os.environ, "JOB": f"{kind} {old}"}
            event = RunEvent(kind, 1.0, "", "", old)  # type: ignore[arg-type]
            subprocess.run(["sh", "-c", command], env=job | environment(event, "log"), check=True)
    assert (tmp_path / "canceled").read_text() == "collapsed False\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["none.jsonl", "--idle", "0.1", "--every", "0.05"],
            "nothing could be read within 0.1 s: none.jsonl does",
        ),
        (["x.pkl"], "loading one executes code"),
        (["x.jsonl", "--framework", "nobody"], "known: areal"),
        (["x.jsonl", "--map", "rewards=a"], "no such column"),
        (["x.jsonl", "--calibration", "none.json"], "cannot be read"),
        (["x.jsonl", "--every", "0"], "--every"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.pkl").write_bytes(b"\x80\x04}.")
    assert said in refused("watch", *arguments)


WRITER = """
import json, os, sys, time
path, rows, go = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3]
with open(path, "a") as file:
    for step, row in enumerate(rows):
        while step == 20 and not os.path.exists(go):
            time.sleep(0.01)
        line = json.dumps({"step": step, "data": row}) + "\\n"
        for part in (line[:40], line[40:]):
            file.write(part)
            file.flush()
            time.sleep(0.002)
"""


def writer(log: Path, rows: list[dict[str, float]], go: Path) -> subprocess.Popen[bytes]:
    """Writes verl's file log: 20 rows at once, the others when the file `go` is there."""
    given = log.with_suffix(".rows")
    given.write_text(json.dumps(rows))
    return subprocess.Popen([sys.executable, "-c", WRITER, str(log), str(given), str(go)])

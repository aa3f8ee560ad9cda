"""The lanes of .ci/run: checks against one third-party stack each, and the slow tests of one folder each.

A lane is a script of .ci/integrations.d. Its line `# covers: GLOB ...` says which files can break it (`*` also matches
`/`), its line `# minutes: N` how long it takes beside another one. `.ci/passed.json` holds, for each lane, the hash of
the covered files with which it last passed. A lane whose files have changed since is due.

    .ci/integrations           every lane, and whether it is due
    .ci/integrations NAME ...  run these, and record those that pass
    python .ci/lanes.py due    names of the lanes that are due, one a line (`--json`: as a JSON list)
    python .ci/lanes.py run-due --seconds N
                               run what is due, two at a time, starting none after N seconds
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AT_A_TIME = 2
LIMIT = 1800
"""Seconds that a lane may take on an ordinary machine."""
GRACE = 240
"""Seconds that a lane under way has once the time for starting new ones is over."""
TAIL = 100
"""Lines of a failed lane that are shown."""


@dataclass(frozen=True)
class Lane:
    """A script, the files that can break it, and its usual minutes beside another lane."""

    name: str
    script: Path
    covers: tuple[str, ...]
    minutes: float


def read_lanes(root: Path = ROOT) -> dict[str, Lane]:
    """Every lane by name."""
    scripts = sorted((root / ".ci" / "integrations.d").glob("*.sh"))
    return {script.stem: _read_lane(script) for script in scripts}


def _read_lane(script: Path) -> Lane:
    text = script.read_text(encoding="utf-8")
    minutes = re.search(r"^# minutes: ([0-9.]+)$", text, re.MULTILINE)
    covers = re.findall(r"^# covers: (.+)$", text, re.MULTILINE)
    if minutes is None or not covers:
        raise SystemExit(f"{script}: needs a line '# minutes: N' and a line '# covers: GLOB ...'")
    return Lane(script.stem, script, tuple(" ".join(covers).split()), float(minutes[1]))


def covered_files(lane: Lane, root: Path = ROOT) -> list[str]:
    """Paths of the files that can break a lane, its own script among them; ignored files are left out."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    own = lane.script.relative_to(root).as_posix()
    names = {name for name in listed if name and any(fnmatchcase(name, glob) for glob in (own, *lane.covers))}
    return sorted(name for name in names if (root / name).is_file())


def content_hash(lane: Lane, root: Path = ROOT) -> str:
    """Hash of the names and contents of the covered files."""
    total = hashlib.sha256()
    for name in covered_files(lane, root):
        total.update(f"{name}\0{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:16]


def read_passed(root: Path = ROOT) -> dict[str, str]:
    """Hash with which each lane last passed."""
    path = root / ".ci" / "passed.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def record_passed(lane: Lane, passed: str, root: Path = ROOT) -> None:
    """Write that a lane passed with the files of this hash."""
    known = {name: value for name, value in read_passed(root).items() if name in read_lanes(root)} | {lane.name: passed}
    lines = json.dumps(dict(sorted(known.items())), indent=1)
    (root / ".ci" / "passed.json").write_text(lines + "\n", encoding="utf-8")


def due_lanes(root: Path = ROOT) -> list[Lane]:
    """The lanes whose covered files changed since they last passed; short ones first, so that many have their turn."""
    passed = read_passed(root)
    due = [lane for lane in read_lanes(root).values() if passed.get(lane.name) != content_hash(lane, root)]
    return sorted(due, key=lambda lane: lane.minutes)


def run_lane(lane: Lane, log: Path, seconds: float) -> int | None:
    """Run a lane into a log; its exit code, or None where these seconds were too few."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["bash", str(lane.script)],
            cwd=lane.script.parents[2],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a lane and all it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def attempt(lane: Lane, log: Path, stop: float) -> str:
    """Run a lane unless it is after `stop` (seconds of the monotonic clock): passed, failed, cut or left out."""
    if time.monotonic() >= stop:
        print(f"{lane.name}: NOT RUN, no time was left", flush=True)
        return "left out"
    limit = LIMIT * float(os.environ.get("TEST_PATIENCE", "1"))
    left = stop + GRACE - time.monotonic()
    before, began = content_hash(lane, _root(lane)), time.monotonic()
    code = run_lane(lane, log, min(limit, left))
    outcome = "passed" if code == 0 else "cut" if code is None and left < limit else "failed"
    if outcome == "passed":
        record_passed(lane, before, _root(lane))
    words = {"passed": "passed", "failed": "FAILED", "cut": "NOT FINISHED, no time was left,"}[outcome]
    print(f"{lane.name}: {words} after {time.monotonic() - began:.0f} s", flush=True)
    return outcome


def _root(lane: Lane) -> Path:
    return lane.script.parents[2]


def run_lanes(lanes: list[Lane], seconds: float, at_a_time: int = AT_A_TIME) -> int:
    """Run lanes and print how each ended; 1 if one failed twice, beside others and then alone."""
    stop = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        logs = {lane: Path(folder) / lane.name for lane in lanes}
        with ThreadPoolExecutor(at_a_time) as pool:
            outcomes = dict(zip(lanes, pool.map(lambda lane: attempt(lane, logs[lane], stop), lanes), strict=True))
        failed = [lane for lane in lanes if outcomes[lane] == "failed" and not _passes_alone(lane, logs[lane], stop)]
        for lane in failed:
            shown = logs[lane].read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:]
            print(f"== {lane.name} FAILED; the end of what it printed:", *(line[:400] for line in shown), sep="\n")
    return int(bool(failed))


def _passes_alone(lane: Lane, log: Path, stop: float) -> bool:
    """Whether a lane that failed passes alone; without time for that the failure stands, with its log."""
    if time.monotonic() >= stop:
        return False
    passed = attempt(lane, log, stop) == "passed"
    if passed:
        print(f"{lane.name}: FLAKY, failed beside others and passed alone", flush=True)
    return passed


def main() -> int:
    """Do what the command line asks; its exit code."""
    parser = argparse.ArgumentParser(prog="lanes.py")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list")
    verbs.add_parser("due").add_argument("--json", action="store_true")
    verbs.add_parser("run").add_argument("names", nargs="+", choices=list(read_lanes()), metavar="NAME")
    verbs.add_parser("run-due").add_argument("--seconds", type=float, required=True)
    asked = parser.parse_args()
    if asked.verb == "run":
        return run_lanes([read_lanes()[name] for name in asked.names], float("inf"), at_a_time=1)
    due = due_lanes()
    if asked.verb == "run-due":
        print(
            f"{len(due)} of {len(read_lanes())} lanes are due: their files changed since they last passed", flush=True
        )
        return run_lanes(due, asked.seconds)
    names = [lane.name for lane in due]
    if asked.verb == "due":
        print(json.dumps(names) if asked.json else "\n".join(names))
    else:
        print("\n".join(f"{name:20} {'due' if name in names else 'passed'}" for name in read_lanes()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

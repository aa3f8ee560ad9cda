"""Runs tests many times from one process that has the libraries loaded: each run is a fork and starts in a second.

The first run notes which functions each test calls, so that a later run can be given only the tests that reach a
change. Linux and macOS only.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

PRELOADED = ("numpy", "pandas", "pyarrow.parquet", "scipy.stats", "torch", "pydantic", "typer.testing")
Function = tuple[str, int]
"""A function: its file and the line it begins at, with its first decorator; line 0 for every function of a file."""


class Profile(NamedTuple):
    """What is known of one test: the seconds it takes and the functions that it calls, its fixtures' too."""

    seconds: float
    reached: frozenset[Function]


class _Recorder:
    """A plugin of pytest that notes the functions of some files that each test calls."""

    def __init__(self, below: str) -> None:
        self.below, self.calls = below, set[Function]()
        self.real: dict[str, str] = {}  # the copy's modules are loaded through links
        self.of_test: dict[str, tuple[float, set[Function]]] = {}
        self.of_fixture: dict[str, set[Function]] = defaultdict(set)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(self.below):
            real = self.real.get(name) or self.real.setdefault(name, os.path.realpath(name))
            self.calls.add((real, frame.f_code.co_firstlineno))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before, self.calls = self.calls, set()
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            self.of_fixture[fixturedef.argname] |= self.calls
            self.calls |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.calls, began = set(), time.perf_counter()
        threading.settrace(self._note)
        sys.settrace(self._note)
        try:
            return (yield)  # type: ignore[return-value]
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            # A fixture of a module runs once: what it calls counts for every test that asks for it.
            fixtures = set().union(*(self.of_fixture[name] for name in item.fixturenames))
            self.of_test[item.nodeid] = (time.perf_counter() - began, self.calls | fixtures)


class _Only:
    """A plugin of pytest that keeps some tests, the files of quick tests first."""

    def __init__(self, chosen: dict[str, float]) -> None:
        self.chosen = chosen

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        kept = [item for item in items if item.nodeid in self.chosen]
        longest: dict[Path, float] = defaultdict(float)
        for item in kept:
            longest[item.path] += self.chosen[item.nodeid]
        items[:] = sorted(kept, key=lambda item: (longest[item.path], str(item.path)))


class WarmTests:
    """The tests of a copy of the repository.

    Args:
        folder: The copy; its modules must not be loaded in this process.
        tests: What pytest is asked to run.
    """

    def __init__(self, folder: Path, tests: Sequence[str]) -> None:
        self.folder, self.tests = folder.resolve(), list(tests)
        self.profiles: dict[str, Profile] = {}
        for name in PRELOADED:
            with suppress(ImportError):
                importlib.import_module(name)

    def learn(self) -> bool:
        """Run every test on the unchanged code and note what each calls; False: one fails."""
        recorder, notes = _Recorder(str(self.folder) + os.sep), self.folder / "profiles.json"

        def work() -> int:
            code = pytest.main([*_OPTIONS, *self.tests], plugins=[recorder])
            found = {name: [seconds, sorted(calls)] for name, (seconds, calls) in recorder.of_test.items()}
            notes.write_text(json.dumps(found))
            return int(code)

        passed = self._forked(work, None, keep_bytecode=True)
        if passed:
            for name, (seconds, calls) in json.loads(notes.read_text()).items():
                inside = [(str(Path(file).relative_to(self.folder)), line) for file, line in calls]
                self.profiles[name] = Profile(seconds, frozenset([*inside, *((file, 0) for file, _ in inside)]))
        return passed

    def reaching(self, function: Function) -> dict[str, float]:
        """The tests that call a function, with their seconds; if none does, those of its file; if none, all."""
        for place in (function, (function[0], 0)):
            if found := {name: known.seconds for name, known in self.profiles.items() if place in known.reached}:
                return found
        return {name: known.seconds for name, known in self.profiles.items()}

    def passes(self, chosen: dict[str, float]) -> bool:
        """Whether some tests pass on the code as it is now, in three times the time they took at first."""
        files = sorted({name.partition("::")[0] for name in chosen})
        work = lambda: int(pytest.main([*_OPTIONS, "-x", *files], plugins=[_Only(chosen)]))  # noqa: E731
        return self._forked(work, 20 + 3 * sum(chosen.values()))

    def _forked(self, work: Callable[[], int], limit: float | None, keep_bytecode: bool = False) -> bool:
        child = os.fork()
        if not child:
            code = 70
            try:
                with self._place(keep_bytecode):
                    code = work()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        deadline = None if limit is None else time.monotonic() + limit
        while True:
            done, status = os.waitpid(child, os.WNOHANG if deadline else 0)
            if done or (deadline and time.monotonic() > deadline):
                break
            time.sleep(0.02)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that a test started and left
        if not done:
            os.waitpid(child, 0)
        return bool(done) and os.waitstatus_to_exitcode(status) == 0

    @contextmanager
    def _place(self, keep_bytecode: bool) -> Iterator[None]:
        """Make this process one that was started in the copy; its output goes to `tests.log` there."""
        os.setpgid(0, 0)
        os.chdir(self.folder)
        places = [str(self.folder / ".types"), str(self.folder)]
        sys.path[:0] = places
        os.environ["PYTHONPATH"] = os.pathsep.join(places)
        sys.dont_write_bytecode = not keep_bytecode
        os.environ["PYTHONDONTWRITEBYTECODE"] = "" if keep_bytecode else "1"
        log = os.open("tests.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        yield


_OPTIONS = ("-q", "-p", "no:cacheprovider")

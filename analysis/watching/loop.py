"""The loop of `vcpo-bench watch`: look, tell, wait, until the run ends or nothing comes any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from vcpo_bench.analysis.logs import LoggedRun
from vcpo_bench.analysis.watching.follow import Follower
from vcpo_bench.analysis.watching.watch import RunEvent, RunWatch
from vcpo_bench.errors import UsageError

_SHARE = 10
"""Reading takes at most one part in so many of the time: a long log is read less often."""
_QUIET = 2
"""Looks without anything new after which the newest step is complete."""


@dataclass(frozen=True)
class Note:
    """Something the watcher should know that is no alarm, as one line."""

    text: str


def watch_log(
    follower: Follower,
    watch: RunWatch,
    every: float,
    idle: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[RunEvent | Note]:
    """Follow a log until the run ends.

    Args:
        follower: The log.
        watch: Tells what is new in it.
        every: Seconds between looks.
        idle: Seconds without anything new after which the run counts as ended; 0: it is waited for without end.
        sleep: Waits.

    Raises:
        UsageError: The log cannot be followed, or none appeared within `idle` seconds.
    """
    changed_at, quiet, waiting = time.monotonic(), 0, ""
    about: set[str] = set()
    while True:
        began = time.monotonic()
        first = follower.run is None
        if follower.poll():
            changed_at, quiet, waiting = began, 0, ""
            yield from _look(follower, watch, first, about)
        else:
            quiet += 1
            if follower.waiting != waiting:
                waiting = follower.waiting
                yield Note(f"waiting: {waiting}")
            if quiet == _QUIET and follower.run is not None and follower.complete:
                yield from _told(watch.look(follower.run, settled=True), about)
        now = time.monotonic()
        silent = idle > 0 and now - changed_at >= idle
        if follower.ended or silent:
            yield from _farewell(follower, watch, idle, about)
            return
        sleep(max(every, _SHARE * (now - began)))


def _look(follower: Follower, watch: RunWatch, first: bool, about: set[str]) -> Iterator[RunEvent | Note]:
    run = follower.run
    assert run is not None
    events = watch.look(run, follower.went_back)
    if first:
        yield Note(f"{run.path}: {run.title}, at step {run.last_step:.15g} ({run.step_unit})")
        yield from map(Note, run.notes)
    yield from _about_detectors(watch, first, about)
    if follower.went_back is not None:
        yield Note(f"the run was resumed at step {follower.went_back:.15g}")
    yield from _told(events, about)


def _told(events: Iterable[RunEvent], about: set[str]) -> Iterator[RunEvent | Note]:
    """Each event, and after the first of its kind what is known of its error rates."""
    for one in events:
        yield one
        if one.about and one.about not in about:
            about.add(one.about)
            yield Note(one.about)


def _about_detectors(watch: RunWatch, first: bool, about: set[str]) -> Iterator[Note]:
    """What cannot raise an alarm, each signal once: some fall silent while responses grow."""
    report = watch.report
    assert report is not None
    for signal, why in report.silent.items():
        if signal not in about:
            about.add(signal)
            yield Note(f"no alarm can come from {signal}: {why}")
    if first:
        yield from map(Note, report.notes)


def _farewell(follower: Follower, watch: RunWatch, idle: float, about: set[str]) -> Iterator[RunEvent | Note]:
    run = follower.run
    if run is None:
        raise UsageError(f"nothing could be read within {idle:g} s: {follower.waiting}")
    yield from _told(watch.look(run, settled=True), about)
    yield Note(_end(run, follower.ended, idle))


def _end(run: LoggedRun, ended: bool, idle: float) -> str:
    why = f"the run ended ({run.status})" if ended else f"nothing new for {idle:g} s"
    return f"{why}, at step {run.last_step:.15g}"

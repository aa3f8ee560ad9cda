"""The mirroring process. It reads JSON lines on stdin: the settings, and a second line when the run is over.

It answers with JSON lines: `{}` is a heartbeat, `{"problem": ...}` is sent before it exits with an error.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from vcpo_bench.bench.outside.mirror.follow import LOOK_SECONDS, MirrorSettings, TrackerMirror


def main() -> None:
    """Mirror until the run is over; exit at once if the run's process is gone."""
    os.nice(10)
    answer = _answers()
    settings = MirrorSettings(**json.loads(sys.stdin.readline()))
    over: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(over,), daemon=True).start()
    tracker = settings.open()
    try:
        connection = tracker.connect(Path(settings.folder).resolve())
        mirror = TrackerMirror(settings, tracker, connection, heartbeat=lambda: answer({}))
        while (last := _next(over)) is None:
            mirror.update()
        mirror.update(last=True)
        if last["report"]:
            mirror.report(Path(last["report"]))
    except Exception as error:
        answer({"problem": tracker.trouble(error)})
        sys.exit(1)


def _answers() -> Callable[[dict[str, Any]], None]:
    """A function that sends an answer; whatever the tracker prints is discarded."""
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return lambda message: print(json.dumps(message), file=stream)


def _listen(over: SimpleQueue[dict[str, Any]]) -> None:
    """Body of a thread: forward the message that the run is over."""
    line = sys.stdin.readline()
    if not line:  # the run was killed
        os._exit(1)
    over.put(json.loads(line))


def _next(over: SimpleQueue[dict[str, Any]]) -> dict[str, Any] | None:
    """Wait `LOOK_SECONDS` for the message that the run is over; None if it did not come."""
    try:
        return over.get(timeout=LOOK_SECONDS)
    except Empty:
        return None


if __name__ == "__main__":
    main()

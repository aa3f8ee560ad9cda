"""What the live server answers: a fixed set of addresses, none of which is the path of a file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from markupsafe import Markup

from vcpo_bench.errors import VcpoBenchError
from vcpo_bench.reports.live.runs import Card, card_of, find_runs, name_of, page_of, state_of
from vcpo_bench.reports.writers.templated import rendered

T = TypeVar("T")


class _Drawings(Generic[T]):
    """The latest drawing of each run. One that took long is kept as long again, however fast its run advances."""

    def __init__(self, draw: Callable[[Path], T]) -> None:
        self._draw = draw
        self._kept: dict[Path, tuple[str, T, float]] = {}
        self._lock = threading.Lock()  # matplotlib draws for one thread at a time

    def state(self, folder: Path) -> str:
        """That of the run, or, while its drawing is kept, of the drawing."""
        kept = self._kept.get(folder)
        return kept[0] if kept and time.monotonic() < kept[2] else state_of(folder)

    def of(self, folder: Path) -> T:
        """The drawing of the run as it is."""
        with self._lock:
            state, kept = self.state(folder), self._kept.get(folder)
            if kept and kept[0] == state:
                return kept[1]
            began = time.monotonic()
            drawn = self._draw(folder)
            ended = time.monotonic()
            self._kept[folder] = state, drawn, 2 * ended - began
            return drawn


class Pages:
    """Pages of the runs in some folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._cards = _Drawings(card_of)
        self._reports = _Drawings(_report)

    def answer(self, path: str) -> tuple[str, str] | None:
        """Kind and text of the page at an address: `/`, `/NAME/`, or either with `state`; None: there is none."""
        runs = {name_of(folder): folder for folder in find_runs(self._folders)}
        if path == "/":
            return "text/html", _overview([self._cards.of(folder) for folder in runs.values()], self._folders)
        if path == "/state":
            return "text/plain", " ".join(self._cards.state(folder) for folder in runs.values())
        name, _, rest = path.removeprefix("/").partition("/")
        if name not in runs or rest not in ("", "state"):
            return None
        if rest:
            return "text/plain", self._reports.state(runs[name])
        return "text/html", self._reports.of(runs[name])


def _report(folder: Path) -> str:
    try:
        return page_of(folder)
    except (VcpoBenchError, OSError) as error:  # its first cell may not have a checkpoint yet
        return _overview(
            [Card(name_of(folder), str(folder), "nothing to show yet", [str(error)], Markup(""))], [folder]
        )


def _overview(cards: list[Card], folders: Sequence[Path]) -> str:
    return rendered("runs.html.j2", "live.js", cards=cards, folders=[str(folder) for folder in folders])

"""`--report-to` and `--to`: the trackers that a run's results are mirrored to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.commands.support.extras import installed
from vcpo_bench.commands.support.say import say
from vcpo_bench.errors import UsageError, how_to_install

if TYPE_CHECKING:
    from vcpo_bench.bench.cells.grid import PlannedCell
    from vcpo_bench.bench.outside.trackers.catalog import Tracker
    from vcpo_bench.bench.running.options import RunOptions


def read_trackers(names: str) -> list[Tracker]:
    """The trackers of a list; empty text: none.

    Raises:
        UsageError: A tracker or parameter is unknown, or a tracker is named twice.
    """
    from vcpo_bench.bench.outside.trackers.catalog import TRACKERS
    from vcpo_bench.naming.grammar import split_list

    trackers = [TRACKERS.parse(text) for text in split_list(names)] if names else []
    kinds = [tracker.name for tracker in trackers]
    if twice := [name for name in kinds if kinds.count(name) > 1]:
        raise UsageError(f"the tracker {twice[0]} is named twice; name it once")
    return trackers


def check_trackers(trackers: list[Tracker]) -> None:
    """Refuse trackers that are not installed, before the first cell.

    Raises:
        UsageError: A package is missing; names it and what installs it.
    """
    for tracker in trackers:
        if not installed(tracker.package):
            raise UsageError(
                f"tracker {tracker.name}: the package {tracker.package} is not installed; "
                f"{how_to_install(tracker.extra)}"
            )


def mirror_ended(folder: Path, trackers: list[Tracker]) -> None:
    """Send a folder's ended cells that are not there yet, and its report, to each tracker; says what was sent.

    Raises:
        UsageError: A tracker's package is missing, or the tracker failed.
    """
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.bench.outside.mirror.process import mirror_folder
    from vcpo_bench.reports.writers.html import write_page

    check_trackers(trackers)
    page = write_page([folder], folder / "report.html")
    for tracker in trackers:
        say(f"{counted(mirror_folder(folder, tracker, page), 'cell')} mirrored to {tracker.text()}")


@contextmanager
def mirrored(
    trackers: list[Tracker], cells: list[PlannedCell], how: RunOptions, warn: Callable[[str], None]
) -> Iterator[Callable[[Callable[[], Path]], None]]:
    """Mirror a grid while it runs.

    Yields:
        A function to be called when the grid has run, with one that writes its report; it does nothing if nothing is
        mirrored.
    """
    from vcpo_bench.bench.outside.mirror.process import Mirror

    with ExitStack() as stack:
        mirrors = [stack.enter_context(Mirror(tracker, how.out, cells, warn)) for tracker in trackers]

        def report(write: Callable[[], Path]) -> None:
            if not mirrors:
                return
            try:
                page = write()
            except Exception as error:  # a report that fails must not fail the run
                warn(f"the report cannot be written ({error}), so it is not mirrored")
                return
            for mirror in mirrors:
                mirror.report(page)

        yield report

"""Keep a page up to date while its runs are still training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from vcpo_bench import records
from vcpo_bench.errors import UsageError
from vcpo_bench.files.atomic import write_text
from vcpo_bench.reports.study import open_study
from vcpo_bench.reports.writers.html import page_path, render

Signature = tuple[tuple[str, int], ...]


def watch(
    results_folders: Iterable[str | Path],
    out_html: str | Path | None = None,
    every: float = 10.0,
    *,
    on_write: Callable[[Path], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """Write the page again whenever a cell has progressed, until none is running; partial cells are shown and marked.

    Args:
        results_folders: Folders that `vcpo-bench run` writes.
        out_html: The page; it is replaced as a whole, so that a browser never reads half of it. None: `report.html` in
            the first results folder.
        every: Seconds between looks; the page reloads itself at the same pace until the last.
        on_write: Called with the page after each writing.
        sleep: Waits.

    Returns:
        The path of the page.
    """
    folders = [Path(folder) for folder in results_folders]
    target, typed = page_path(folders, out_html), out_html is not None
    seen: Signature | None = None
    while True:
        now = signature(folders)
        if now != seen and refresh(folders, target, typed, round(every) if running(folders) else 0):
            seen = now
            on_write(target)
        if seen is not None and not running(folders):
            return target
        sleep(every)


def refresh(folders: list[Path], target: Path, typed: bool, reload_seconds: int) -> bool:
    """Write the page once; False while no cell can be read yet."""
    try:
        study = open_study(folders, partial=True)
    except UsageError:
        return False
    write_text(target, render(study, reload_seconds, target.parent), typed)
    return True


def signature(folders: list[Path]) -> Signature:
    """Names and modification times of everything that changes when a cell progresses."""
    found = []
    for folder in folders:
        for path in sorted((folder / records.CELLS).glob("*")):
            inside = [path, *path.glob("checkpoint-*")]
            found.append((str(path), max(entry.stat().st_mtime_ns for entry in inside if entry.exists())))
    return tuple(found)


def running(folders: list[Path]) -> bool:
    """Whether a cell is still running."""
    return any(any((folder / records.CELLS).glob(f"*{records.PARTIAL_SUFFIX}")) for folder in folders)

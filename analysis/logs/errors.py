"""Why a path gives no run: it holds several, or says too little so far."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vcpo_bench.errors import UsageError

_SHOWN = 4


class SeveralRunsError(UsageError):
    """A folder holds several runs."""

    def __init__(self, root: Path, runs: Sequence[Path]) -> None:
        self.runs = tuple(runs)
        shown = ", ".join(map(str, self.runs[:_SHOWN]))
        super().__init__(
            f"{root} holds {len(self.runs)} runs; give one of them ({shown}), or, if they are parts of one run, all of "
            "them in order"
        )


def by_folder(root: Path, logs: Sequence[Path]) -> list[Path]:
    """The folders below a root, if each log lies in one and there are several: a run may have several logs."""
    below = [one.relative_to(root).parts for one in logs]
    folders = sorted({parts[0] for parts in below})
    if len(folders) > 1 and all((root / parts[0]).is_dir() for parts in below):
        return [root / name for name in folders]
    return list(logs)


class NotYetError(UsageError):
    """What was read holds no run so far; who follows the log waits, everyone else is told."""

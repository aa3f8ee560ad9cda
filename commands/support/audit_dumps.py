"""Token dumps of other trainers for `vcpo-bench lab audit-lag`: gaps of each file against those of the first steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.errors import UsageError

if TYPE_CHECKING:
    from vcpo_bench.bench.replay.verify import VersionVerdict


def holds_dumps(folder: Path) -> bool:
    """Whether a folder is one of token dumps, and not of a cell."""
    from vcpo_bench.analysis.logs.readers.token_dumps import dump_step
    from vcpo_bench.records import CELL_FILE

    if (folder / CELL_FILE).exists():
        return False
    return any(dump_step(path) is not None for path in folder.rglob("*.jsonl"))


def audit_dumps(folder: Path, alpha: float, honest: int) -> Iterator[VersionVerdict]:
    """A finding for every dump after the first steps.

    Args:
        folder: Where the dumps are.
        alpha: Probability of any false alarm, at most.
        honest: Number of steps, the first ones, that are taken as honest.

    Raises:
        UsageError: No step is honest or none is left, or the dumps hold too few sequences.
    """
    import numpy as np

    from vcpo_bench.analysis.logs.readers.token_dumps import dump_gaps
    from vcpo_bench.bench.replay.verify.findings import TooFewHonestError, judge
    from vcpo_bench.progress import track

    dumps = dump_gaps(folder)
    steps = sorted({dump.step for dump in dumps})
    if not 0 < honest < len(steps):
        raise UsageError(
            f"--honest {honest}: {folder} holds {len(steps)} steps with log-probabilities of sampler and trainer; give "
            "the number of first steps from which the tolerance is learned, and leave some to test"
        )
    known = np.concatenate([dump.gaps for dump in dumps if dump.step in steps[:honest]])
    tested = [dump for dump in dumps if dump.step not in steps[:honest]]
    for dump in track(tested, "testing dumps", len(tested)):
        try:
            finding = judge(f"step {dump.step} ({dump.file})", dump.gaps, known, alpha / len(tested))
        except TooFewHonestError as error:
            raise UsageError(f"{folder / dump.file}: {error}; give a larger --honest or --alpha") from error
        yield replace(finding, cause="its sampler did not hold the weights that the trainer scored with")

"""Many diagnosed runs as a table for the terminal: one line each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vcpo_bench.analysis.diagnosis.index import IndexedRun

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 20
"""Characters of a curve."""


def index_text(rows: Sequence[IndexedRun], root: Path) -> str:
    """The index: name, verdict, onset, first cause, curve of the reward."""
    cells = [("run", "verdict", "onset", "first cause", "reward")]
    for row in rows:
        onset = math.nan if row.found is None else row.found.onset
        verdict = "not read" if row.found is None else row.found.verdict
        shown = "" if math.isnan(onset) else f"{onset:g}"
        cells.append((row.name(root), verdict, shown, row.first_cause or row.problem, sparkline(row.curve)))
    widths = [max(len(line[at]) for line in cells) for at in range(3)]
    cause = max((len(row.first_cause) for row in rows), default=0)
    widths.append(max(cause, len("first cause")))
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, (*widths, 0), strict=True)) for line in cells]
    counts = ", ".join(
        f"{sum(_verdict(row) == one for row in rows)} {one}" for one in dict.fromkeys(map(_verdict, rows))
    )
    compared = [f"  {row.name(root)}: {row.against_baseline}" for row in rows if row.against_baseline]
    blocks = [f"{len(rows)} runs: {counts}", "\n".join(line.rstrip() for line in lines)]
    if compared:
        blocks.append("\n".join(["First against the reference run (another seed of it may differ as much)", *compared]))
    return "\n\n".join([*blocks, "One of them in full: vcpo-bench diagnose RUN"])


def sparkline(values: NDArray[np.float64]) -> str:
    """A curve of at most 20 characters, from the lowest of its values, or 0, to the highest."""
    if not values.size:
        return ""
    means = np.array([part.mean() for part in np.array_split(values, min(_WIDTH, values.size))])
    low, high = min(float(means.min()), 0.0), float(means.max())
    levels = np.zeros(means.size) if high <= low else (means - low) / (high - low) * (len(_BLOCKS) - 1)
    return "".join(_BLOCKS[round(float(level))] for level in levels)


def _verdict(row: IndexedRun) -> str:
    return "not read" if row.found is None else row.found.verdict

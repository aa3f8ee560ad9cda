"""What a command that trained says at its end: what came out, where the results are, and what to do with them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.commands.support.say import say_aside

if TYPE_CHECKING:
    import pandas as pd

    from vcpo_bench.analysis.results import Results


def say_what_next(out: Path, results: Results, board: pd.DataFrame, quiet: bool) -> None:
    """Say what came out, and name the files and the next command."""
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.reports.outcome import collapsed, highest

    if quiet:
        return
    for line in (*(_decided(results) or highest(board)), *collapsed(board)):
        say_aside(line)
    cells = sum(not path.name.startswith(".") for path in (out / "cells").glob("*"))
    say_aside(f"written: {out / 'scoreboard.csv'} and {counted(cells, 'folder')} in {out / 'cells'}")
    say_aside(f"next: vcpo-bench report {shlex.quote(str(out))}")


def _decided(results: Results) -> list[str]:
    """What the seeds decide at each lag, and what would decide more; nothing where there is no choice of methods."""
    from vcpo_bench.analysis.commands.compare import analyze_compare
    from vcpo_bench.analysis.comparison.answers import NEXT, in_short

    if results.cells.loc[results.cells["staleness"] > 0, "method"].nunique() < 2:
        return []
    found = analyze_compare(results)
    return [one.text for one in (*in_short(found), *found.about(NEXT))]

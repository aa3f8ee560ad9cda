"""What a command that trained says at its end: what came out, where the results are, and what to do with them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from vcpo_bench.commands.support.say import say_aside

if TYPE_CHECKING:
    import pandas as pd


def say_what_next(out: Path, board: pd.DataFrame, quiet: bool) -> None:
    """Say what came out, and name the files and the next command.

    Args:
        out: Results folder.
        board: Its scoreboard.
        quiet: Say nothing.
    """
    from vcpo_bench.reports.outcome import outcome

    if quiet:
        return
    for line in outcome(board):
        say_aside(line)
    cells = sum(not path.name.startswith(".") for path in (out / "cells").glob("*"))
    say_aside(f"written: {out / 'scoreboard.csv'} and {cells} folders in {out / 'cells'}")
    say_aside(f"next: vcpo-bench report {shlex.quote(str(out))}")

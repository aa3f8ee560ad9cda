"""What a command that trained says at its end: where the results are, and what to do with them."""

from __future__ import annotations

import shlex
from pathlib import Path

from vcpo_bench.commands.support.say import say_aside


def say_what_next(out: Path, quiet: bool) -> None:
    """Name the files and the next command.

    Args:
        out: Results folder.
        quiet: Say nothing.
    """
    if quiet:
        return
    cells = sum(not path.name.startswith(".") for path in (out / "cells").glob("*"))
    say_aside(f"written: {out / 'scoreboard.csv'} and {cells} folders in {out / 'cells'}")
    say_aside(f"next: vcpo-bench report {shlex.quote(str(out))}   (one HTML page with figures and what is sure)")

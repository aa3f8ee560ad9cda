"""The scoreboard of a results folder, printed and written to `scoreboard.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vcpo_bench.commands.support.say import say, say_aside

if TYPE_CHECKING:
    import pandas as pd

    from vcpo_bench.analysis.results import Results


def show_scoreboard(
    folder: Path, as_json: bool, *more: Path, fail_if: Sequence[str] = ()
) -> tuple[Results, pd.DataFrame]:
    """Print the scoreboard of a results folder and write its `scoreboard.csv`; of several, pooled, only print it.

    Returns:
        The results and their scoreboard.

    Raises:
        typer.Exit: A row meets one of the conditions `fail_if`; each that does is said on a line.
    """
    from vcpo_bench.analysis.comparison.conditions import read_condition, rows_that_meet
    from vcpo_bench.analysis.comparison.scoreboard import scoreboard, write_csv
    from vcpo_bench.analysis.results import load_comparable
    from vcpo_bench.reports.terminal.plain_console import PlainConsole
    from vcpo_bench.reports.terminal.scoreboard import scoreboard_table

    results = load_comparable([folder, *more])
    board = scoreboard(results)
    conditions = [read_condition(text, list(board.columns)) for text in fail_if]
    for problem in results.problems + results.notes:  # tables are read, and found damaged, when asked for
        say_aside(f"warning: {problem}")
    if as_json:
        say(board.to_json(orient="records", indent=1))
    else:
        PlainConsole().print(scoreboard_table(board))
    if not more:
        try:
            write_csv(board, folder / "scoreboard.csv")
        except OSError as error:  # results of others, or on a read-only disk
            say_aside(f"warning: {folder / 'scoreboard.csv'} could not be written ({error.strerror})")
    met = [line for condition in conditions for line in rows_that_meet(condition, board)]
    for line in met:
        say_aside(f"failed: {line}")
    if met:
        raise typer.Exit(1)
    return results, board

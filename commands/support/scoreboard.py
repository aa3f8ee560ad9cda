"""The scoreboard of a results folder, printed and written to `scoreboard.csv`."""

from __future__ import annotations

from pathlib import Path

import typer


def show_scoreboard(folder: Path, as_json: bool, *more: Path) -> None:
    """Print the scoreboard of a results folder and write its `scoreboard.csv`; of several, pooled, only print it."""
    from rich.console import Console

    from vcpo_bench.analysis.comparison.scoreboard import scoreboard, write_csv
    from vcpo_bench.analysis.results import load
    from vcpo_bench.reports.terminal.scoreboard import scoreboard_table

    results = load([folder, *more])
    board = scoreboard(results)
    for problem in results.problems + results.notes:  # tables are read, and found damaged, when asked for
        typer.echo(f"warning: {problem}", err=True)
    if not more:
        write_csv(board, folder / "scoreboard.csv")
    if as_json:
        typer.echo(board.to_json(orient="records", indent=1))
    else:
        Console().print(scoreboard_table(board))

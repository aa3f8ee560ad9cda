"""Findings of an analysis on the terminal, and their tables as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vcpo_bench.commands.support.options import DEFAULT_OUT
from vcpo_bench.commands.support.outputs import check_folder
from vcpo_bench.commands.support.say import say

Tables = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the tables behind the findings, as CSV.")]
Ids = Annotated[
    bool, typer.Option("--ids", metavar="", help="Print every finding with its id, for vcpo-bench results trace.")
]


def show_findings(analysis: str, folders: list[Path] | None, out: Path | None, ids: bool) -> None:
    """Run an analysis and print what it found.

    Raises:
        UsageError: There is no such analysis, no results, or no way to write the tables.
    """
    from vcpo_bench.analysis.commands import ANALYSES
    from vcpo_bench.analysis.commands import run as run_analysis
    from vcpo_bench.analysis.csv_text import without_formulas
    from vcpo_bench.analysis.wording import counted
    from vcpo_bench.errors import UsageError
    from vcpo_bench.files.atomic import replacing
    from vcpo_bench.reports.numbers import statement_id

    check_folder("--out", out)
    findings = run_analysis(analysis, folders or [DEFAULT_OUT])
    if ids and ANALYSES.parse(analysis).text() not in ANALYSES.names():
        raise UsageError(f"--ids: trace computes analyses with their defaults; leave out the parameters of {analysis}")
    known = [one for one in findings.statements if one.known or ids]
    for statement in known:
        say(f"{statement_id(analysis, statement.text)}  {statement.text}" if ids else statement.text)
    if unknown := len(findings.statements) - len(known):
        say(f"{counted(unknown, 'more question')} cannot be answered from so few runs; --ids prints every one")
    if out:
        out.mkdir(parents=True, exist_ok=True)
        for name, table in findings.tables.items():
            with replacing(out / f"{name}.csv") as draft:
                without_formulas(table).to_csv(draft, index=False)
            say(f"table: {out / name}.csv")

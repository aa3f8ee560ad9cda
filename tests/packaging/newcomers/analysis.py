"""`lab analyze newcomer`: which runs are longest."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.findings import Findings, own_key
from vcpo_bench.analysis.results import Results


@dataclass(frozen=True, kw_only=True)
class Newcomer(Analysis):
    """`vcpo-bench lab analyze newcomer`."""

    name = "newcomer"
    summary = "Which runs are longest"

    def run(self, results: Results) -> Findings:
        """Table `runs`."""
        table = results.cells[["key", "steps_done"]].reset_index(drop=True)
        found = Findings({"runs": table}, {"runs": own_key})
        text = f"The longest of {len(table)} runs has {table['steps_done'].max()} updates."
        found.statements.append(found.finding("length", text, "runs", table, ("steps_done",)))
        return found

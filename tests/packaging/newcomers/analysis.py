"""`analyze newcomer`: which runs are longest."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.findings import Findings, own_key
from vcpo_bench.analysis.results import Results


@dataclass(frozen=True, kw_only=True)
class Newcomer(Analysis):
    """`vcpo-bench analyze newcomer`."""

    name = "newcomer"
    summary = "Which runs are longest"

    def run(self, results: Results) -> Findings:
        """Table `runs`."""
        return Findings({"runs": results.cells[["key", "steps_done"]]}, {"runs": own_key})

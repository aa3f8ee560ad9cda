"""What an analysis is: a name, one line about it, and a function from results to findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.results import Results


@dataclass(frozen=True)
class Analysis:
    """Something `vcpo-bench analyze NAME` can do.

    Attributes:
        name: What the user types.
        summary: One line: the question it answers.
        function: Computes the tables and the statements.
    """

    name: str
    summary: str
    function: Callable[[Results], Findings]

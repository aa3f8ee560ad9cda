"""What an analysis is, and the catalog of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.results import Results
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.component import Component


@dataclass(frozen=True, kw_only=True)
class Analysis(Component, ABC):
    """Something `vcpo-bench lab analyze NAME` does. A named subclass in a file of this folder is one."""

    @abstractmethod
    def run(self, results: Results) -> Findings:
        """Compute the tables and the statements; at least one sentence, also of runs that are few or all failed."""


ANALYSES = Catalog(
    "analysis",
    Analysis,  # type: ignore[type-abstract]  # the catalog makes objects of subclasses only
    ["vcpo_bench.analysis.commands"],
    plural="analyses",
)
"""Every analysis; adding one takes one file in this folder, or a plug-in file."""

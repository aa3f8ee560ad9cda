"""The analyzes by name: what `vcpo-bench analyze` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from vcpo_bench.analysis.collapse.findings import analyze_collapse
from vcpo_bench.analysis.comparison.findings import analyze_compare
from vcpo_bench.analysis.diagnostics.gradients import analyze_gradients
from vcpo_bench.analysis.diagnostics.weights import analyze_weights
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.prediction.findings import analyze_prediction
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.errors import UsageError

ANALYSES: dict[str, Callable[[Results], Findings]] = {
    "weights": analyze_weights,
    "gradients": analyze_gradients,
    "collapse": analyze_collapse,
    "compare": analyze_compare,
    "prediction": analyze_prediction,
}


def run(kind: str, folder: str | Path | Iterable[str | Path], include_partial: bool = False) -> Findings:
    """Run one analysis on a results folder (or several, pooled).

    Args:
        kind: `weights`, `gradients`, `collapse`, `compare` or `prediction`.
        folder: As `analysis.results.load`.
        include_partial: Also use running or interrupted cells.

    Returns:
        Sentences, those about damaged files and mixed versions first, tables, and documents.

    Raises:
        UsageError: Unknown kind, or no results there.
    """
    if kind not in ANALYSES:
        close = get_close_matches(kind, ANALYSES, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"unknown analysis {kind!r}: {hint}There are {', '.join(ANALYSES)}")
    results = load(folder, include_partial)
    findings = ANALYSES[kind](results)
    warnings = [f"Damaged: {problem}." for problem in results.problems] + [f"Note: {note}." for note in results.notes]
    return Findings(warnings + findings.text, findings.tables, findings.documents)

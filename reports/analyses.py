"""The analyses a report is made from: those of the catalog, and a few that only reports need."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from vcpo_bench.analysis.caveats import caveats
from vcpo_bench.analysis.commands import ANALYSES
from vcpo_bench.analysis.commands.prediction import analyze_auroc
from vcpo_bench.analysis.comparison.coverage import coverage
from vcpo_bench.analysis.findings import Findings
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.prediction.twins import HISTORY
from vcpo_bench.analysis.results import Results

CURVES = (
    *("sampled_reward", "ess_ratio", "grad_norm", "kl_mu_theta_k3"),
    *("log_weight_max", "entropy", "step_scale", "lag_mean"),
)
"""Columns of the updates that figures draw over time."""
_OF_PICTURES = (*CURVES, "seconds_sample", "seconds_score", "seconds_update", "seconds_record")
"""Columns of the updates that figures need, which are drawn after everything else is known."""
_OF_SECTIONS = (
    *_OF_PICTURES,
    *("lag_max", "ess_ratio_used", "token_ess_ratio", "log_weight_var", "length_mean", "kl_mu_theta_k1"),
    *("grad_norm_clipped", "lr", "grad_cosine", "head_grad_norm"),
    *("seconds_wait", "episode_turns"),
)
"""Columns of the updates that sections ask for one after another."""


def columns_read() -> list[str]:
    """All columns of the updates that a report needs: read at once, each of thousands of files is opened once."""
    return list(dict.fromkeys([*_OF_SECTIONS, *columns_of_signals(), *HISTORY]))


def columns_of_signals() -> list[str]:
    """Those of them that only the signals need, and so only the finding `auroc`."""
    signals = (name for one in all_signals().values() for name in one.columns)
    return [name for name in dict.fromkeys(signals) if name not in _OF_SECTIONS]


def columns_of_sections() -> list[str]:
    """Those of them that no figure needs."""
    return [name for name in _OF_SECTIONS if name not in _OF_PICTURES]


class FindingSource(NamedTuple):
    """Where findings of a report come from.

    Attributes:
        run: Computes them.
        command: What `vcpo-bench lab analyze` calls the analysis that has their tables; empty: only a report has them.
    """

    run: Callable[[Results], Findings]
    command: str = ""


def _caveats(results: Results) -> Findings:
    """Every table is read first, because damage is found by reading. A report does not say where its folder was."""
    results.step_columns(*CURVES)
    for name in ("evals", "lags", "episodes", "probes", "lm_eval"):
        getattr(results, name)
    return caveats(results, lambda folder: folder.resolve().name)


_OF_REPORTS = {
    # The primary endpoint of a prediction study, from fewer signals.
    "auroc": FindingSource(analyze_auroc, '"prediction(least_lag=0)"'),
    "coverage": FindingSource(coverage),
    "caveats": FindingSource(_caveats),
}


def find_source(name: str) -> FindingSource:
    """The source of that name: `auroc`, `coverage`, `caveats`, or an analysis of the catalog.

    Raises:
        ExpressionError: There is none.
    """
    return _OF_REPORTS.get(name) or FindingSource(ANALYSES.parse(name).run, name)

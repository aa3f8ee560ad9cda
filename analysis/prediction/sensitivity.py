"""Does the answer depend on the definition of failure, on one part of the study, or on a few runs?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vcpo_bench.analysis.collapse.rule import CollapseRule, events
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.auroc import auroc_row
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD, Panel
from vcpo_bench.analysis.results import Results

RULES = {
    "as written": CollapseRule(),
    "stricter (depth 0.7, 5 evaluations)": CollapseRule(depth=0.7, patience=5),
    "looser (depth 0.3, 2 evaluations)": CollapseRule(depth=0.3, patience=2),
}
REGIMES = ("task", "staleness", "lr", "method")

_REPLICATIONS = 500
_RUN = ["key", "task", "method", "staleness", "lr", "seed", "event"]
Row = dict[str, Any]


def definitions_table(panel: Panel, results: Results) -> pd.DataFrame:
    """AUROC at the primary lead under other definitions of failure.

    Columns: `definition`, `signal` and those of `analysis.prediction.auroc.auroc_row`. Besides
    other parameters of the rule: runs that ended as nan as censored where they ended, and runs that rebounded left out.
    """
    verdicts = {name: events(results, rule) for name, rule in RULES.items()}
    written = verdicts["as written"]
    nan = written["event"] == "nan"
    verdicts["nan is censoring"] = written.assign(
        failed=written["failed"] & ~nan, onset=written["onset"].mask(nan), event=written["event"].mask(nan, "healthy")
    )
    rebound = written["event"] == "collapse with rebound"
    verdicts["rebounds left out"] = written.assign(
        failed=written["failed"] & ~rebound, event=written["event"].mask(rebound, "not applicable")
    )
    draws = bootstrap_draws(panel, _REPLICATIONS)
    rows = []
    for definition, verdict in verdicts.items():
        other = panel.judged_by(verdict)
        sets = risk_sets(other, PRIMARY_LEAD)
        for name in panel.recorded():
            row: Row = {"definition": definition, "signal": name}
            rows.append(row | auroc_row(compare_signal(panel, name, sets), other, draws))
    return pd.DataFrame(rows)


def regimes_table(panel: Panel) -> pd.DataFrame:
    """AUROC at the primary lead within one task, lag, learning rate or method: where does a signal not work?

    Columns: `column`, `value_of`, `signal`, those of `analysis.prediction.auroc.auroc_row`, and
    `at_case`, `at_control`: median score at the landmark of failed runs and of their controls, in the signal's unit.
    """
    draws = bootstrap_draws(panel, _REPLICATIONS)
    sets = risk_sets(panel, PRIMARY_LEAD)
    rows = []
    for column in REGIMES:
        values = panel.runs[column]
        for value in sorted(values.unique()):
            here = sets.among((values == value).to_numpy(dtype=bool))
            for name in panel.recorded():
                row: Row = {"column": column, "value_of": str(value), "signal": name}
                row |= auroc_row(compare_signal(panel, name, here), panel, draws)
                at = panel.scores_at(name, here.row)
                row["at_case"] = _median(at[np.arange(here.case.size), here.case])
                rows.append(row | {"at_control": _median(at[here.controls])})
    return pd.DataFrame(rows)


def placements_table(panel: Panel) -> pd.DataFrame:
    """Every failed run with a landmark at the primary lead, one by one.

    Columns: the run, `onset`, `controls` (how many it is ranked among), `score` (of the primary signal), and
    `above_NAME`: share of its controls that it outranks by that signal; NaN where the signal was not recorded.
    """
    sets = risk_sets(panel, PRIMARY_LEAD)
    table = panel.runs.loc[sets.case, _RUN].reset_index(drop=True)
    table["onset"] = panel.onset[sets.case]
    table["controls"] = sets.controls.sum(axis=1)
    if PRIMARY in panel.values:
        table["score"] = panel.scores_of(PRIMARY, sets.case, sets.row)
    position = {int(case): i for i, case in enumerate(sets.case)}
    for name in panel.recorded():
        one = compare_signal(panel, name, sets)
        share = np.full(sets.case.size, np.nan)
        share[[position[int(case)] for case in one.case]] = one.placements()
        table[f"above_{name}"] = share
    return table


def _median(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")

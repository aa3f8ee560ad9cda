"""How well, and how early, does each signal separate the runs that will fail from those that will not?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from vcpo_bench.analysis.intervals import holm, wilson
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.landmarks import Comparison, bootstrap_draws, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.panel import LEADS, MATCH, PRIMARY_LEAD, TOO_FEW, Array, Panel
from vcpo_bench.analysis.prediction.precision_recall import Landmarks, average_precision, landmarks, ranks_within
from vcpo_bench.analysis.prediction.stratified import Part, StratifiedComparison, StratifiedDraws
from vcpo_bench.analysis.tolerance import EQUAL

REPLICATIONS = 1000
AFTER = -10
"""A lead after the onset: does the signal at least react?"""

_PRECISION_REPLICATIONS = 200
_HALF = 0.5

Row = dict[str, Any]
BETTER, WORSE, NOTHING = "better than chance", "points the other way", "cannot be told from chance"


def auroc_table(
    panel: Panel, signals: Iterable[str] | None = None, leads: Sequence[int] = (*LEADS, AFTER)
) -> pd.DataFrame:
    """One row per signal and lead.

    Columns: `signal`, `lead` (negative: after the onset), `n_collapsed`, `n_healthy`; `value`, `low`,
    `high` (AUROC with 95% interval, configurations resampled), `p` (two-sided, against 1/2), `p_holm` (over all signals
    and leads before the onset but the primary endpoint), `verdict`; `auprc`, `auprc_low`, `auprc_high`,
    `prevalence`. With too few runs or configurations (`Panel.enough`) the numbers are NaN and the verdict says so.
    """
    return _table(_signal_rows([panel], leads, signals))


def auroc_by_signal(panels: Iterable[Panel], leads: Sequence[int]) -> pd.DataFrame:
    """`auroc_table` of the signals of several panels of the same runs, of which one at a time is in memory."""
    return _table(_signal_rows(panels, leads))


def _table(rows: Iterable[Row]) -> pd.DataFrame:
    table = pd.DataFrame(list(rows)).sort_values(["signal", "lead"], kind="stable", ignore_index=True)
    exploratory = (table["lead"] > 0) & ~((table["signal"] == PRIMARY) & (table["lead"] == PRIMARY_LEAD))
    table["p_holm"] = holm(table["p"].where(exploratory))
    return table


def _signal_rows(panels: Iterable[Panel], leads: Sequence[int], signals: Iterable[str] | None = None) -> Iterator[Row]:
    few, places = np.empty((0, 0)), list[tuple[int, list[Part], Landmarks]]()
    for panel in panels:
        if not places:  # of the runs, whatever the signal
            draws = bootstrap_draws(panel, REPLICATIONS)
            few = draws[:_PRECISION_REPLICATIONS].copy()
            strata = StratifiedDraws(draws, panel.strata(MATCH), panel.cluster)
            del draws  # the strata have theirs
            places = [(lead, strata.parts(risk_sets(panel, lead)), landmarks(panel, lead)) for lead in leads]
        for name in panel.recorded() if signals is None else signals:
            for lead, parts, rest in places:
                row: Row = {"signal": name, "lead": lead}
                one = StratifiedComparison(panel, name, parts)
                row |= _area(panel, one.runs(panel.healthy), one.auroc, one.replicates)
                known = panel.scores_of(name, rest.run, rest.row)
                yield row | _precision(known, rest, few, row["verdict"] != TOO_FEW and lead > 0)


def auroc_row(comparison: Comparison, panel: Panel, draws: Array) -> Row:
    """Counts, AUROC, interval, p and verdict of one comparison; no numbers where there are too few runs."""
    return _area(
        panel, comparison.runs(panel.healthy), comparison.auroc, lambda: comparison.replicates(draws, panel.cluster)
    )


def _area(
    panel: Panel,
    runs: tuple[NDArray[np.int64], NDArray[np.int64]],
    auroc: Callable[[], float],
    replicates: Callable[[], Array],
) -> Row:
    collapsed, healthy = (one.size for one in runs)
    counts: Row = {"n_collapsed": collapsed, "n_healthy": healthy}
    if not panel.enough(*runs):
        return counts | {"value": np.nan, "low": np.nan, "high": np.nan, "p": np.nan, "verdict": TOO_FEW}
    value, drawn = auroc(), replicates()
    low, high = area_interval(value, drawn, collapsed)
    word = BETTER if low > _HALF else WORSE if high < _HALF else NOTHING
    return counts | {"value": value, "low": low, "high": high, "p": area_p(value, drawn, collapsed), "verdict": word}


def area_interval(value: float, drawn: Array, cases: int) -> tuple[float, float]:
    """95% percentile interval; where every replicate is perfect, Wilson's bound for that many cases instead."""
    low, high = percentile_interval(value, drawn)
    if min(value, 1 - value) <= EQUAL and high - low <= EQUAL:
        return wilson(round(value * cases), cases)
    return low, high


def area_p(value: float, drawn: Array, cases: int) -> float:
    """Two-sided p of an area against 1/2, by its bootstrap standard error.

    A perfect area has no spread over replicates; it is given that of an area of 1 - 1/(2 cases).
    """
    error = float(np.nanstd(drawn))
    if error == 0 and value != _HALF:
        error = float(np.sqrt(0.5 / cases * (1 - 0.5 / cases) / cases))
    return float(2 * special.ndtr(-abs(value - _HALF) / error)) if error > 0 else 1.0


def hanley_mcneil(area: float, collapsed: int, healthy: int) -> float:
    """Half-width of the 95% interval of an AUROC of independent runs (Hanley and McNeil 1982)."""
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (collapsed - 1) * (q1 - area**2) + (healthy - 1) * (q2 - area**2)
    return float(1.96 * np.sqrt(spread / (collapsed * healthy)))


def matching_table(panel: Panel) -> pd.DataFrame:
    """AUROC at the primary lead when controls are matched on less, and on more, than step, task, regime and lag.

    Columns: `signal`, `match` (`nothing`: any task, lag and step; `step`; `lag`: and task, at any step;
    `step+lag`: the endpoint; `+rate`: and learning rate; `+rate+method`) and those of `auroc_row`. Matching
    on step leaves nothing of a mere clock, matching on lag nothing of a mere reflection of the lag; what is left with
    learning rate and method matched too separates seeds of one configuration.
    """
    draws = bootstrap_draws(panel, REPLICATIONS // 2)
    schemes: dict[str, tuple[tuple[str, ...], bool]] = {
        "nothing": ((), True),
        "step": ((), False),
        "lag": (MATCH, True),
        "step+lag": (MATCH, False),
        "+rate": ((*MATCH, "lr"), False),
        "+rate+method": ((*MATCH, "lr", "method"), False),
    }
    rows = []
    for label, (columns, any_step) in schemes.items():
        sets = risk_sets(panel, PRIMARY_LEAD, columns)
        rest = landmarks(panel, PRIMARY_LEAD)
        for name in panel.recorded():
            one = _any_step(panel, name, rest, columns) if any_step else compare_signal(panel, name, sets)
            row: Row = {"signal": name, "match": label}
            rows.append(row | auroc_row(one, panel, draws))
    return pd.DataFrame(rows)


def _any_step(panel: Panel, name: str, rest: Landmarks, columns: Sequence[str]) -> Comparison:
    """Cases against the landmarks of other runs at whatever step; each control counts by its mean over landmarks."""
    grid = np.unique(rest.row)
    table = np.full((len(panel.runs), grid.size), np.nan)
    negative = ~rest.positive
    scores = panel.scores_of(name, rest.run, rest.row)
    table[rest.run[negative], np.searchsorted(grid, rest.row[negative])] = scores[negative]
    case, own = rest.run[rest.positive], scores[rest.positive]
    case, own = case[np.isfinite(own)], own[np.isfinite(own)]
    known = np.isfinite(table)
    stratum = panel.strata(columns)
    usable = np.asarray(known.any(axis=1))[None, :] & (stratum[case][:, None] == stratum[None, :])
    usable[np.arange(case.size), case] = False
    wins, number = np.zeros(usable.shape), known.sum(axis=1)
    for run, values in enumerate(np.sort(table, axis=1)):  # those that are not known come last
        ordered = values[: number[run]]
        lower = np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right")
        wins[:, run] = lower / 2 / max(number[run], 1)
    kept = usable.any(axis=1)
    return Comparison(case[kept], usable[kept], wins[kept], stratum[case][kept])


def _precision(values: Array, rest: Landmarks, draws: Array, enough: bool) -> dict[str, float]:
    nothing = {"auprc": np.nan, "auprc_low": np.nan, "auprc_high": np.nan, "prevalence": np.nan}
    if not enough:
        return nothing
    known = np.isfinite(values)
    label, run = rest.positive[known], rest.run[known]
    rank = ranks_within(values[known], rest.group[known])
    ones = np.ones((1, draws.shape[1]))
    drawn = average_precision(rank, label, run, draws)
    area = float(average_precision(rank, label, run, ones)[0])
    low, high = percentile_interval(area, drawn)
    return {"auprc": area, "auprc_low": low, "auprc_high": high, "prevalence": float(label.mean())}

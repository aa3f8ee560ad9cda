"""Alarm episodes on held-out runs: operating curves, one stated operating point, every miss and every false alarm."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.alarm_outcomes import FURTHEST, NEAREST, Clock, Outcomes, clock, placebo
from vcpo_bench.analysis.prediction.clusters import clustered_share
from vcpo_bench.analysis.prediction.landmarks import bootstrap_draws
from vcpo_bench.analysis.prediction.panel import TOO_FEW, Array, Flags, Panel
from vcpo_bench.analysis.prediction.thresholds import SPLITS, Fold, TunedDetector, cross_fitted, folds

TARGETS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
"""Shares of the healthy training runs that may be alarmed, along the operating curve."""
OPERATING = 0.1
"""The stated operating point: at most 1 in 10 healthy training runs is ever alarmed."""

_REPLICATIONS = 500
_RUN = ["key", "task", "method", "staleness", "lr", "seed"]
Row = dict[str, Any]


class AlarmTables(NamedTuple):
    """`operating`, `episodes`, `misses`, `false_alarms`, `thresholds`, `generalization`: see the report."""

    operating: pd.DataFrame
    episodes: pd.DataFrame
    misses: pd.DataFrame
    false_alarms: pd.DataFrame
    thresholds: pd.DataFrame
    generalization: pd.DataFrame


def alarm_tables(panel: Panel) -> AlarmTables:
    """Tune every recorded signal in the same way on training runs, and apply it to the held-out ones.

    - `operating`: `signal`, `target` (share of healthy training runs that may be alarmed) and the columns of
      `summary`, held-out seeds;
    - `episodes`: the rows of `operating` at the stated operating point;
    - `misses`: every failure not announced in time there: `signal`, the run, `onset` and `why`;
    - `false_alarms`: every run with a false episode there: `signal`, the run, `alarms`, `first` and `onset`;
    - `thresholds`: `signal`, `split`, `held_out`, `target`, `window`, `persistence`, `threshold` and
      the training runs behind them;
    - `generalization`: the operating point with seeds, lags, methods and tasks held out: `split`, `signal`, the
      columns of `summary` and `drop` (of recall against held-out seeds).
    """
    time, draws = clock(panel), bootstrap_draws(panel, _REPLICATIONS)
    collected: dict[str, list[Any]] = {"operating": [], "misses": [], "false": [], "thresholds": [], "general": []}
    splits = {split: parts for split in SPLITS if (parts := folds(panel, split))}
    for name in panel.recorded():
        for split, parts in splits.items():
            targets = TARGETS if split == "seed" else tuple(one for one in TARGETS if one <= OPERATING)
            for target, result, settings in cross_fitted(panel, time, name, parts, targets):
                row: Row = {"signal": name, "target": target} | summary(result, time, panel, draws)
                collected["thresholds"] += _settings(name, split, target, settings)
                if target == OPERATING:
                    collected["general"].append({"split": split} | row)
                if split == "seed":
                    collected["operating"].append(row)
                    if target == OPERATING:
                        collected["misses"].append(_misses(name, result, panel))
                        collected["false"].append(_false_alarms(name, result, panel))
    operating = pd.DataFrame(collected["operating"])
    return AlarmTables(
        operating,
        operating[operating["target"] == OPERATING].reset_index(drop=True) if len(operating) else operating,
        _together(collected["misses"]),
        _together(collected["false"]),
        pd.DataFrame(collected["thresholds"]),
        _with_drop(pd.DataFrame(collected["general"])),
    )


def summary(result: Outcomes, time: Clock, panel: Panel, draws: Array) -> Row:
    """What a detector did, over all runs that recorded its signal.

    Columns: `n_collapsed`, `n_healthy`; `recall` (failures announced in time), `recall_low`, `recall_high`
    (`clustered_share` of configurations); `false_per_1000` healthy updates with interval (configurations resampled);
    `healthy_alarmed` (share of the runs that never fail but are alarmed) with interval as of `recall`; `precision` (of
    episodes) with interval; `lead_median`, `lead_q25`, `lead_q75` (among the caught); `late`, `early`, `never` (counts
    of the others); `placebo_recall`, `placebo_low`, `placebo_high`, `placebo_p` (random alarms at the same rate);
    `updates_saved` (if every alarm stopped its run, updates not spent on runs that fail), `stopped_wrongly` (healthy
    runs stopped), `verdict`. With too few runs all but the counts is NaN.
    """
    failed, healthy = result.known & panel.failed, result.known & panel.healthy
    counts: Row = {"n_collapsed": int(failed.sum()), "n_healthy": int(healthy.sum())}
    if not panel.enough(np.flatnonzero(failed), np.flatnonzero(healthy)):
        return counts | {"verdict": TOO_FEW}
    caught, alarmed = int(result.caught[failed].sum()), int((result.false[healthy] > 0).sum())
    row = counts | _share("recall", result.caught, failed, panel)
    row |= _ratio("false_per_1000", 1000 * result.false, result.exposure, result.known, draws)
    row |= _share("healthy_alarmed", result.false > 0, healthy, panel)
    row |= _ratio("precision", result.hits, result.hits + result.false, result.known, draws)
    leads = result.lead[failed & result.caught]
    for label, quantile in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        row[f"lead_{label}"] = float(np.quantile(leads, quantile)) if leads.size else np.nan
    row |= {"late": int(result.late[failed].sum()), "early": int(result.early[failed].sum())}
    row["never"] = int(failed.sum()) - caught - row["late"] - row["early"]
    chance, drawn = placebo(result, time, failed, panel.cluster)
    low, high = np.quantile(drawn, [0.025, 0.975]) / failed.sum()
    row |= {"placebo_recall": chance, "placebo_low": float(low), "placebo_high": float(high)}
    row["placebo_p"] = float((1 + (drawn >= caught).sum()) / (1 + drawn.size))
    budget = panel.runs["steps_done"].to_numpy(dtype=np.float64)
    saved = np.where(np.isfinite(result.first), np.maximum(budget - result.first, 0.0), 0.0)
    row |= {"updates_saved": float(saved[failed].sum()), "stopped_wrongly": alarmed}
    return row | {"verdict": "beats random alarms" if row["placebo_p"] < 0.05 else "no better than random alarms"}


def _interval(name: str, value: float, bounds: tuple[float, float]) -> Row:
    return {name: float(value), f"{name}_low": bounds[0], f"{name}_high": bounds[1]}


def _share(name: str, success: Flags, among: Flags, panel: Panel) -> Row:
    """A share of some runs with an interval by configuration."""
    rate = clustered_share(success[among], panel.cluster[among])
    assert rate is not None
    return _interval(name, rate.value, (rate.low, rate.high))


def _ratio(name: str, above: Array, below: Array, known: Flags, draws: Array) -> Row:
    """A ratio of sums over runs with its interval; NaN where there is nothing below the line."""
    above, below = above * known, below * known
    if below.sum() == 0:
        return _interval(name, np.nan, (np.nan, np.nan))
    total = draws @ below
    drawn = (draws @ above)[total > 0] / total[total > 0]
    ratio = float(above.sum() / below.sum())
    return _interval(name, ratio, percentile_interval(ratio, drawn))


def _settings(name: str, split: str, target: float, settings: list[tuple[Fold, TunedDetector]]) -> list[Row]:
    return [
        {"signal": name, "split": split, "held_out": fold.name, "target": target} | tuned._asdict()
        for fold, tuned in settings
    ]


def _misses(name: str, result: Outcomes, panel: Panel) -> pd.DataFrame:
    here = result.known & panel.failed & ~result.caught
    why = np.select(
        [result.late, result.early],
        [f"too late: less than {NEAREST} updates before, or after", f"too early: more than {FURTHEST} updates before"],
        "no alarm",
    )
    table = panel.runs.loc[here, _RUN].assign(onset=panel.onset[here], why=why[here])
    table.insert(0, "signal", name)
    return table


def _false_alarms(name: str, result: Outcomes, panel: Panel) -> pd.DataFrame:
    here = result.known & (result.false > 0)
    table = panel.runs.loc[here, _RUN].assign(
        alarms=result.false[here].astype(np.int64), first=result.first[here], onset=panel.onset[here]
    )
    table.insert(0, "signal", name)
    return table


def _together(tables: list[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _with_drop(table: pd.DataFrame) -> pd.DataFrame:
    if table.empty or "recall" not in table:
        return table
    seeds = table[table["split"] == "seed"].set_index("signal")["recall"]
    return table.assign(drop=table["signal"].map(seeds) - table["recall"])

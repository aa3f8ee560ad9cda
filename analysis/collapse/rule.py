"""How did a run end? A fixed rule on evaluation reward, which no method ever trains on.

Let r_0 (start policy), r_1, ... be the sampled rewards of the evaluations, and b_i = max(r_0..r_i), the best so far
including the start. Evaluation i is *down* when b_i > 0, r_i < (1 - depth) b_i and b_i - r_i >= min_drop. A *fall* is
`patience` or more consecutive evaluations that are down; its onset is the step of the first. Rewards within
`tolerance.EQUAL` of a threshold are on it, so that rounding decides nothing. Then, in this order:

- `not applicable`: the cell ended in an error; or it did not end as nan, was not stopped, and has fewer than patience
  + 1 evaluations or never reached `min_reward`;
- `collapse`: a fall, and the run is down at its end (the mean of its last `patience` evaluations is);
- `collapse with rebound`: a fall, but not down at the end, however deep it was in between;
- `nan`: no fall, and the run ended because its evidence was not finite; onset is its last step;
- `stopped`: no fall, and an alarm ended the run: how it would have ended is not known, so it is censored at its last
  evaluation. This censoring is not random: where alarms are right, survival without the stopped runs looks too good;
- `transient dip`: down at least once, never for `patience` evaluations, and up again;
- `stall`: never down, and its last `patience` evaluations are on average less than `min_gain` above the start;
- `healthy`: everything else.

A run that is down at its last evaluation, but not yet long enough to be a fall, is judged without those evaluations
and marked `unresolved`. A run that falls and then ends as nan is a collapse with `ended_nan`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from vcpo_bench.analysis.results import Results, Verdicts
from vcpo_bench.analysis.series import beginnings, first_long_streak, in_order
from vcpo_bench.analysis.tolerance import EQUAL
from vcpo_bench.progress import track

Kind = Literal[
    "healthy", "stall", "transient dip", "collapse with rebound", "collapse", "nan", "stopped", "not applicable"
]
KINDS: tuple[Kind, ...] = (
    "healthy", "stall", "transient dip", "collapse with rebound", "collapse", "nan", "stopped", "not applicable",
)  # fmt: skip
FAILURES: tuple[Kind, ...] = ("collapse", "collapse with rebound", "nan")
"""The events that count as failure, in survival curves and failure rates."""
UNDECIDED: tuple[Kind, ...] = ("stopped", "not applicable")
"""The events that leave open whether a run failed."""


@dataclass(frozen=True)
class CollapseRule:
    """Parameters of the rule in this module's docstring; the defaults were fixed before any run was judged."""

    depth: float = 0.5
    min_drop: float = 0.1
    patience: int = 3
    min_reward: float = 0.05
    min_gain: float = 0.05


_JUDGED = ("key", "step", "sampled_reward")
"""The columns of the evaluations that the rule looks at."""


@dataclass(frozen=True)
class CollapseVerdict:
    """The verdict on one run.

    Attributes:
        kind: One of `KINDS`.
        onset: Step of the first evaluation of the first fall, or the last step of a nan run; else NaN.
        lowest: Lowest reward after the onset as a share of the best before it; NaN without a fall.
        final: Mean of the last `patience` evaluations as a share of the best so far.
        falls: How many separate falls.
        unresolved: Down at the last evaluation, not yet for long enough.
        ended_nan: The run ended because its evidence was not finite.
    """

    kind: Kind
    onset: float = float("nan")
    lowest: float = float("nan")
    final: float = float("nan")
    falls: int = 0
    unresolved: bool = False
    ended_nan: bool = False


def judge(
    steps: ArrayLike, reward: ArrayLike, status: str = "completed", rule: CollapseRule | None = None
) -> CollapseVerdict:
    """Apply the rule to one run.

    Args:
        steps: Step of each evaluation, ascending, shape [n].
        reward: Sampled reward on held-out prompts, shape [n]; evaluations that are not finite are left out.
        status: How the cell ended (`records.Status`), or `"partial"`.
        rule: None: the default parameters.
    """
    rule = rule or CollapseRule()
    values, at = np.asarray(reward, dtype=np.float64), np.asarray(steps, dtype=np.float64)
    values, at = values[np.isfinite(values)], at[np.isfinite(values)]
    nan, stopped = status == "nan", status == "stopped_by"
    if status == "error" or values.size < rule.patience + 1 or values.max() < rule.min_reward - EQUAL:
        return CollapseVerdict("nan" if nan else "stopped" if stopped else "not applicable", ended_nan=nan)
    best = np.maximum.accumulate(values)
    down = _down(values, best, rule)
    final = float(values[-rule.patience :].mean())
    share = final / best[-1]
    first = first_long_streak(down, rule.patience)
    if first is not None:
        still_down = bool(_down(np.array([final]), best[-1:], rule)[0])
        lowest = float(values[first:].min() / best[first])
        kind: Kind = "collapse" if still_down else "collapse with rebound"
        return CollapseVerdict(
            kind,
            float(at[first]),
            lowest,
            share,
            _count_falls(down, rule.patience),
            bool(down[-1]) and not still_down,
            nan,
        )
    unresolved = bool(down[-1])
    if nan:
        return CollapseVerdict("nan", float(at[-1]), final=share, unresolved=unresolved, ended_nan=True)
    if stopped:
        return CollapseVerdict("stopped", final=share, unresolved=unresolved)
    settled = values[: _last_up(down) + 1]
    if down[: settled.size].any():
        kind = "transient dip"
    else:
        kind = "stall" if settled[-rule.patience :].mean() < values[0] + rule.min_gain - EQUAL else "healthy"
    return CollapseVerdict(kind, final=share, unresolved=unresolved)


def events(results: Results, rule: CollapseRule | None = None) -> pd.DataFrame:
    """One row per cell: its columns plus those of `CollapseVerdict`, `last_step` and `collapsed`."""
    verdicts = _known_verdicts(results, rule or CollapseRule())
    table = results.cells.join(verdicts)
    at_end = (table["event"] == "nan") & table["steps_done"].notna()
    table["onset"] = table["onset"].mask(at_end, table["steps_done"]).astype("float64")
    return table.assign(last_step=table.pop("last_step"), collapsed=table["event"].isin(FAILURES))


def _known_verdicts(results: Results, rule: CollapseRule) -> pd.DataFrame:
    """Columns of `CollapseVerdict` and `last_step` of every cell; judged once, for many tables rest on them."""
    inputs = [*(results.cells[name] for name in ("key", "status")), *(results.evals[name] for name in _JUDGED)]
    kept = results.verdicts.get(rule)
    if kept is None or not all(map(pd.Series.equals, kept.inputs, inputs)):
        curves = _curves(results)
        found = pd.DataFrame([one.__dict__ for one in _verdicts(results.cells, curves, rule)], results.cells.index)
        last = {key: steps[-1] for key, (steps, _) in curves.items()}
        found["last_step"] = results.cells["key"].map(last).astype("float64")
        kept = Verdicts([one.copy() for one in inputs], found.rename(columns={"kind": "event"}))
        results.verdicts[rule] = kept
    return kept.table


def sensitivity(results: Results) -> pd.DataFrame:
    """How the verdicts move when depth, patience and minimum drop are varied around the rule.

    Columns: the three parameters; `collapsed` and, of these, `rebound` counts; `agreement` (share of cells with
    the same failed-or-not verdict as the rule itself) and `onset_shift` (median shift of the onset in updates,
    cells failed in both).
    """
    chosen, curves = CollapseRule(), _curves(results)
    rules = [
        replace(chosen, depth=depth, patience=patience, min_drop=min_drop)
        for depth, patience, min_drop in product((0.3, 0.5, 0.7), (2, 3, 5), (0.05, 0.1, 0.2))
    ]
    cells = _may_fail(results.cells, curves, [chosen, *rules])
    never = len(results.cells) - len(cells)
    base = _verdicts(cells, curves, chosen)
    rows = []
    for varied in track(rules, "judging by other rules", len(rules)):
        pairs = list(zip(base, _verdicts(cells, curves, varied), strict=True))
        kinds = [other.kind for _, other in pairs]
        same = [(one.kind in FAILURES) == (other.kind in FAILURES) for one, other in pairs]
        shift = [b.onset - a.onset for a, b in pairs if a.kind in FAILURES and b.kind in FAILURES]
        rows.append(
            {
                "depth": varied.depth,
                "patience": varied.patience,
                "min_drop": varied.min_drop,
                "collapsed": sum(kind in FAILURES for kind in kinds),
                "rebound": kinds.count("collapse with rebound"),
                "agreement": (never + sum(same)) / len(results.cells),
                "onset_shift": float(np.median(shift)) if shift else float("nan"),
            }
        )
    return pd.DataFrame(rows)


def _may_fail(cells: pd.DataFrame, curves: Curves, rules: list[CollapseRule]) -> pd.DataFrame:
    """The cells that could have failed by one of these rules: those that end as nan or are down at least once.

    Most runs of a large study are in neither group, and need not be judged by every rule.
    """
    loosest = CollapseRule(min(one.depth for one in rules), min(one.min_drop for one in rules))
    found = cells["status"].to_numpy() == "nan"
    for row, key in enumerate(cells["key"]):
        if not found[row] and key in curves:
            values = curves[key][1]
            values = values[np.isfinite(values)]
            found[row] = _down(values, np.maximum.accumulate(values), loosest).any()
    kept: pd.DataFrame = cells[found]
    return kept


Curves = dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


def _curves(results: Results) -> Curves:
    """Steps and sampled reward of every cell that has evaluations."""
    table = in_order(results.evals)
    keys, starts = beginnings(table)
    steps = np.split(table["step"].to_numpy(dtype=np.float64), starts[1:])
    reward = np.split(table["sampled_reward"].to_numpy(dtype=np.float64), starts[1:])
    return {key: (steps[i], reward[i]) for i, key in enumerate(keys)}


def _verdicts(cells: pd.DataFrame, curves: Curves, rule: CollapseRule) -> list[CollapseVerdict]:
    verdicts = []
    for key, status in zip(cells["key"], cells["status"], strict=True):
        steps, reward = curves.get(key, (np.array([]), np.array([])))
        verdicts.append(judge(steps, reward, status, rule))
    return verdicts


def _down(values: NDArray[np.float64], best: NDArray[np.float64], rule: CollapseRule) -> NDArray[np.bool_]:
    return (best > 0) & (values < (1 - rule.depth) * best - EQUAL) & (best - values >= rule.min_drop - EQUAL)


def _count_falls(down: NDArray[np.bool_], patience: int) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], down, [False]]).astype(np.int8)))
    return int((edges[1::2] - edges[::2] >= patience).sum())


def _last_up(down: NDArray[np.bool_]) -> int:
    """Position of the last evaluation that is not down; the first one never is."""
    return int(np.flatnonzero(~down)[-1])


def lag_at_onset(results: Results, verdicts: pd.DataFrame) -> pd.Series[float]:
    """Mean realized lag, in updates, of the last update before the onset of each run, by key.

    NaN for a run that did not fail, or that recorded no lag there.

    Args:
        results: The runs.
        verdicts: Of `analysis.collapse.rule.events`: `key`, `onset` and `failed`.
    """
    onset = verdicts.set_index("key")["onset"].where(verdicts.set_index("key")["collapsed"].astype(bool))
    steps = results.step_columns("lag_mean")
    before = steps[steps["step"] < steps["key"].map(onset)]
    last = before.loc[before.groupby("key", sort=False)["step"].idxmax(), ["key", "lag_mean"]]
    return last.set_index("key")["lag_mean"].reindex(onset.index).astype(np.float64)

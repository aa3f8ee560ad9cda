"""The answer at each lag in one sentence: which method, at which learning rate, by how much, and how sure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy

from vcpo_bench.analysis.comparison.pairs import decidable
from vcpo_bench.analysis.findings import Finding, Findings
from vcpo_bench.analysis.intervals import ENOUGH, LEVEL
from vcpo_bench.analysis.wording import counted, fixed, interval_of, learning_rate, listed, row_by_row, with_interval

ANSWER = "answer"
"""Topic: which method at each lag, at which rate, by how much, and whether it can be told from chance."""
BY_TASK = "by task"
"""Topic: the means of every method on each task, which the pooled answers average over."""
MARGIN = 0.05
"""Two methods whose difference lies within this of 0, in units of the score, are equivalent."""
DISAGREEMENT = "disagreement"
"""Topic: lags at which another method leads on another task."""
NEXT = "next"
"""Topic: what to run next."""

_COLUMNS = (
    *("staleness", "method", "rates", "seeds", "runs", "collapsed", "lost", "passed_over", "all_collapsed"),
    *("iqm", "iqm_low", "iqm_high", "reward"),
    *("runner_up", "ahead", "ahead_low"),
)
_PAIR = ("first", "second", "estimate", "low", "high", "p_holm")


def answers_table(
    ranking: pd.DataFrame, pairs: pd.DataFrame, choices: pd.DataFrame, by_task: pd.DataFrame
) -> pd.DataFrame:
    """One row per lag with rewards: of the methods with runs that survived, that with the highest interquartile mean.

    Columns: `staleness`, `method`, `rates` (learning rates chosen for it), `seeds` (fewest in a task), its `runs`
    and how many `collapsed`, `lost` (how many methods with rewards have no run that survived), `passed_over` (those
    of them above it), `all_collapsed` (no method has a survivor), `iqm` with `_low` and `_high`, `reward` (its mean
    final reward; NaN with several tasks), `runner_up` (the next of those with survivors; empty: none), `ahead`
    (paired difference of mean scores) with `_low` and `_high`, `p_holm`, `pairs` behind the difference, `tests` that
    Holm corrects for, and `outcome`: `clear`, `behind` (the mean of the next is higher by more than chance explains),
    `chance`, `untested` (too few pairs), `alone` or `lost` (`all_collapsed`); `margin`, and `equivalent`: two
    one-sided t tests at 2.5% each place the difference within it of 0 (its 95% interval lies inside);
    `shown_by_twice`: the difference that twice as many seeds would show.

    Args:
        ranking: Table of `analysis.comparison.rankings.ranking` by lag, the best first.
        pairs: Table of `analysis.comparison.pairs.all_pairs`.
        choices: Learning rates that were chosen.
        by_task: Table of `analysis.comparison.rankings.task_means`.
    """
    rows = []
    for lag, here in ranking.groupby("staleness", sort=True):
        known = here[here["iqm"].notna()]
        if known.empty:
            continue
        alive = known[known["collapsed"] < known["scored"]]
        ranked = known.iloc[:1] if alive.empty else alive
        best = ranked.iloc[0]
        row = {"staleness": lag, "method": best["method"], "rates": _rates(choices, lag, str(best["method"]))}
        row |= {name: best[name] for name in ("seeds", "runs", "collapsed", "iqm", "iqm_low", "iqm_high")}
        row |= {"lost": len(known) - len(alive), "passed_over": list(known.index).index(best.name)}
        row["all_collapsed"] = alive.empty
        own = by_task.loc[(by_task["staleness"] == lag) & (by_task["method"] == best["method"]), "reward"]
        row["reward"] = float(own.iloc[0]) if len(own) == 1 else np.nan
        runner_up = str(ranked.iloc[1]["method"]) if len(ranked) > 1 else ""
        row |= {"runner_up": runner_up} | _ahead(pairs, lag, str(best["method"]), runner_up)
        rows.append(row | {"outcome": "lost"} if alive.empty else row)
    columns = [*_COLUMNS, "ahead_high", "p_holm", "pairs", "tests", "outcome"]
    table = pd.DataFrame(rows, columns=columns)
    inside = (table["ahead_low"] > -MARGIN) & (table["ahead_high"] < MARGIN)
    return table.assign(margin=MARGIN, equivalent=inside, shown_by_twice=_shown_by_twice(table))


def _shown_by_twice(answers: pd.DataFrame) -> pd.Series[float]:
    """The difference that twice as many seeds show with a power of 80%, before Holm's other steps.

    NaN where a difference is known, and where the present spread does not tell: too few seeds for an interval, or
    several tasks, whose spreads it mixes.
    """
    known = answers[(answers["outcome"] == "chance") & (answers["pairs"] == answers["seeds"])]
    seeds = known["seeds"].to_numpy(np.float64)
    half = (known["ahead_high"] - known["ahead_low"]).to_numpy(np.float64) / 2
    error = half / scipy.special.stdtrit(seeds - 1, 0.975) / math.sqrt(2)
    quantiles = scipy.special.stdtrit(2 * seeds - 1, 1 - 0.025 / known["tests"].to_numpy(np.float64))
    return pd.Series(error * (quantiles + scipy.special.stdtrit(2 * seeds - 1, 0.8)), index=known.index)


def _rates(choices: pd.DataFrame, lag: object, method: str) -> str:
    if choices.empty:
        return ""
    own = choices[(choices["staleness"] == lag) & (choices["method"] == method)]
    return " or ".join(learning_rate(float(one)) for one in sorted(own["chosen_lr"].dropna().unique()))


def _ahead(pairs: pd.DataFrame, lag: object, best: str, other: str) -> dict[str, object]:
    """How far the best is ahead of another, and whether that can be told from chance."""
    unknown: dict[str, object] = dict.fromkeys(("ahead", "ahead_low", "ahead_high", "p_holm"), np.nan)
    unknown |= {"pairs": 0, "tests": 0}
    if not other:
        return unknown | {"outcome": "alone"}
    here = pairs[pairs["staleness"] == lag]
    found = here[here["first"].isin([best, other]) & here["second"].isin([best, other])]
    if found.empty or not decidable(found).all():
        return unknown | {"outcome": "untested"}
    first, _, estimate, low, high, p = found.iloc[0][list(_PAIR)]
    if first != best:
        estimate, low, high = -estimate, -high, -low
    outcome = "chance" if p >= LEVEL else "clear" if estimate > 0 else "behind"
    facts: dict[str, object] = {
        "ahead": estimate,
        "ahead_low": low,
        "ahead_high": high,
        "p_holm": p,
        "outcome": outcome,
    }
    return facts | {"pairs": int(found["pairs"].iloc[0]), "tests": len(here)}


def answers(found: Findings, normalized: bool) -> Iterator[Finding]:
    """One sentence per lag.

    Args:
        found: With the tables `answers` and, of lags at which no run survived, `ranking`.
        normalized: Scores are shares of the gain of synchronous training, which sentences give in percent.
    """
    say = _Shares() if normalized else _Rewards()
    several = found.tables["scores"]["lr"].nunique() > 1
    for part, row in row_by_row(found.tables["answers"]):
        if row["outcome"] == "lost":
            ranking = found.tables["ranking"]
            here = ranking[ranking["staleness"] == row["staleness"]]
            at = " at the learning rate chosen for its method" if several else ""
            text = f"Lag {row['staleness']}: no run{at} survived, so no method is ahead."
            yield found.finding(ANSWER, text, "ranking", here, ("staleness", "method", "runs", "collapsed"))
            continue
        rate = f" at learning rate {row['rates']}" if row["rates"] and several else ""
        fell = f" ({row['collapsed']} of {counted(row['runs'], 'run')} collapsed)" if row["collapsed"] else ""
        text = f"Lag {row['staleness']}: {_told(row, str(row['method']) + rate + fell, say)}."
        yield found.finding(ANSWER, text, "answers", part, tuple(found.tables["answers"].columns))


class _Rewards:
    """How values and differences are worded where scores are rewards as they are."""

    def value(self, row: Mapping[Any, Any]) -> str:
        """What the best ends at."""
        return f"reward {interval_of(row, 'iqm')}"

    def gap(self, value: float, low: float, high: float) -> str:
        """A difference with its interval."""
        return with_interval(value, low, high)


class _Shares(_Rewards):
    """Where scores are shares of the synchronous gain; the reward comes first, where a single task has one."""

    def value(self, row: Mapping[Any, Any]) -> str:
        ends = f" [{row['iqm_low']:.0%}, {row['iqm_high']:.0%}]" if row["iqm_low"] < row["iqm_high"] else ""
        share = f"{row['iqm']:.0%}{ends} of the synchronous gain"
        return share if math.isnan(row["reward"]) else f"reward {fixed(row['reward'])}, {share}"

    def gap(self, value: float, low: float, high: float) -> str:
        return f"{with_interval(100 * value, 100 * low, 100 * high, 0)} points"


def _told(row: Mapping[Any, Any], who: str, say: _Rewards) -> str:
    """Where the best method ends, and whether that is more than chance: each mean is called what it is."""
    other, outcome = row["runner_up"], row["outcome"]
    ends = f"{say.value(row)} (interquartile mean)"
    if outcome == "alone":
        none = "no run of another method survived" if row["lost"] else "no other method has a reward"
        return f"{who} ends at {ends}; {none}"
    among = " of the methods with runs that survived" if row["passed_over"] else ""
    highest = f"{who} ends highest{among}, {ends}"
    if outcome == "untested":
        return f"{highest}; too few seeds to tell it from {other}, the next"
    chance = f"({'p < 0.001' if row['p_holm'] < 0.001 else 'p = ' + format(row['p_holm'], '.3f')} after Holm)"
    if outcome == "behind":
        gap = say.gap(-row["ahead"], -row["ahead_high"], -row["ahead_low"])
        middle = f"without its best and worst quarter of runs, {highest}"
        return (
            f"the mean of {other} is {gap} above that of {row['method']}, more than chance explains {chance}; {middle}"
        )
    if row["ahead"] < 0:
        return f"{who} ends at {ends} and cannot be told apart from {other}, the next {chance}{_equivalence(row, say)}"
    margin = say.gap(row["ahead"], row["ahead_low"], row["ahead_high"])
    sure = "more than chance explains" if outcome == "clear" else "no more than chance explains"
    equivalence = _equivalence(row, say) if outcome == "chance" else ""
    return f"{highest}, its mean {margin} above {other}, the next: {sure} {chance}{equivalence}"


def _equivalence(row: Mapping[Any, Any], say: _Rewards) -> str:
    """What two one-sided tests add to a difference that cannot be told from 0."""
    shown = "they are equivalent" if row["equivalent"] else "they are not shown to be equivalent"
    return f"; {shown} within {say.gap(row['margin'], math.nan, math.nan)}"


def task_rows(found: Findings) -> Iterator[Finding]:
    """One sentence per lag with the methods of each task, the best first; none where all runs are of one task.

    Args:
        found: With the table `by_task`.
    """
    table = found.tables["by_task"]
    known = table[table["mean"].notna()]
    if known["task"].nunique() < 2:
        return
    for lag, here in known.groupby("staleness"):
        tasks = []
        for task, own in here.sort_values("mean", ascending=False, kind="stable").groupby("task"):
            rows = [row for _, row in row_by_row(own)]
            means = [f"{row['method']} {with_interval(row['mean'], row['low'], row['high'])}" for row in rows]
            tasks.append(f"{task}: {', '.join(means)}")
        columns = ("staleness", "task", "method", "mean", "low", "high")
        yield found.finding(BY_TASK, f"Lag {lag}, {'; '.join(tasks)}.", "by_task", here, columns)


def disagreements(found: Findings) -> Iterator[Finding]:
    """Lags at which the method with the highest mean is not the same on every task, by more than their intervals.

    Args:
        found: With the table `by_task`.
    """
    table = found.tables["by_task"]
    for lag, here in table[table["mean"].notna()].groupby("staleness"):
        leaders = here.loc[here.groupby("task")["mean"].idxmax()]
        if leaders["method"].nunique() < 2 or not _apart(here, leaders):
            continue
        led = [f"{row['method']} leads on {row['task']} ({fixed(row['mean'])})" for _, row in row_by_row(leaders)]
        text = f"Lag {lag}: the tasks disagree, so read them one by one: {listed(led)}."
        yield found.finding(DISAGREEMENT, text, "by_task", leaders, ("staleness", "task", "method", "mean"))


def in_short(found: Findings) -> list[Finding]:
    """One sentence per lag: how the tasks disagree where they do, else the answer."""
    led = {_lag(found, one): one for one in found.about(DISAGREEMENT)}
    return [led.get(_lag(found, one), one) for one in found.about(ANSWER)]


def _lag(found: Findings, one: Finding) -> int:
    return int(found.tables[one.table]["staleness"].iloc[one.rows[0]])


def _apart(here: pd.DataFrame, leaders: pd.DataFrame) -> bool:
    """Whether, on some task, the interval of its leader ends above that of another task's; unknown ones may well."""
    pairs = leaders.merge(here[here["method"].isin(leaders["method"])], on="task", suffixes=("", "_other"))
    pairs = pairs[pairs["method"] != pairs["method_other"]]
    return not (pairs["low"] <= pairs["high_other"]).all()


def next_steps(found: Findings, normalized: bool) -> Iterator[Finding]:
    """What would make the answers surer.

    Args:
        found: With the tables `answers` and `scores`.
        normalized: As for `answers`.
    """
    table, scores = found.tables["answers"], found.tables["scores"]
    lost = table["all_collapsed"].astype(bool)
    unsure = table[table["outcome"].isin(["chance", "untested"]) & ~table["equivalent"] & ~lost]
    steps = []
    if len(unsure):
        lags = listed([str(lag) for lag in unsure["staleness"]])
        seeds = max(ENOUGH, 2 * int(unsure["seeds"].max()))
        apart = unsure["shown_by_twice"]
        if apart.notna().all():
            shown = f"{apart.max():.0%} of the synchronous gain" if normalized else fixed(apart.max())
            lags += f" if they differ by {shown} (four times in five)"
        steps.append(f"--seeds {seeds} to tell the best two apart at lag {lags}")
    rates = scores.loc[scores["staleness"] > 0, "lr"].unique()
    if len(rates) == 1:
        factors, why = (1 / 3, 3.0), "show each method at its best"
        if len(lost) and lost.all():
            factors, why = (1 / 9, 1 / 3), "find a rate that runs survive"
        around = sorted([float(f"{rates[0] * factor:.2g}") for factor in factors] + [float(rates[0])])
        steps.append(f"--lr {','.join(map(learning_rate, around))} to {why}")
    if steps and len(table):
        text = f"Next: run the same grid with {', or with '.join(steps)}."
        yield found.finding(
            NEXT, text, "answers", table, ("staleness", "method", "runner_up", "outcome", "shown_by_twice")
        )

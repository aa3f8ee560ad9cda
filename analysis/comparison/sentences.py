"""What the tables of `compare` say in sentences: limits, ranking, pairs, and the choice of learning rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.comparison.best_learning_rate import were_tuned
from vcpo_bench.analysis.comparison.normalized_rewards import all_usable
from vcpo_bench.analysis.comparison.pairs import decidable, why_not_judged
from vcpo_bench.analysis.findings import NOTE, Finding, Findings
from vcpo_bench.analysis.intervals import ENOUGH, LEVEL, few_runs
from vcpo_bench.analysis.wording import learning_rate, listed, row_by_row

RANKING = "ranking"
"""Topic: which others the best method at each lag beats."""
TUNING = "tuning"
"""Topic: the learning rates that were chosen."""

_PLACE = ("task", "regime", "staleness")


def limits(found: Findings) -> Iterator[Finding]:
    """What cannot be concluded from these runs."""
    yield from _without_anchor(found)
    yield from _anchor_at_edge(found)
    yield from _uneven_budgets(found)
    cells = found.tables["scores"]
    lagged = cells[cells["staleness"] > 0]
    if lagged.empty:
        text = "No run has a lag above 0: there is nothing to compare."
        yield found.finding(NOTE, text, "scores", cells, ("key", "staleness"))
        return
    if lagged["lr"].nunique() == 1:
        text = "Only one learning rate was run: nothing was tuned, and the ranking may be an accident of its choice."
        yield found.finding(NOTE, text, "scores", lagged, ("key", "lr"))
    if lagged["seed"].nunique() < 2:
        text = "With one seed nothing can be tuned and tested apart: no method is shown at its best learning rate."
        yield found.finding(NOTE, text, "scores", lagged, ("key", "seed"))
    ranking = found.tables["ranking"]
    few = ranking[ranking["runs"] < ENOUGH]
    if len(few):
        yield found.finding(NOTE, few_runs(int(few["runs"].min())), "ranking", few, ("staleness", "method", "runs"))


def _without_anchor(found: Findings) -> Iterator[Finding]:
    anchors = found.tables["anchors"]
    for part, row in row_by_row(anchors[~anchors["usable"].astype(bool)]):
        gain = row["sync"] - row["start"]
        why = f"synchronous training {f'loses {-gain:.3f}' if gain < 0 else f'gains only {gain:.3f}'}"
        if row["sync_seeds"] == 0:
            why = "there is no synchronous run"
        text = f"{row['task']}: {why}, so rewards are not normalized and tasks are not on one scale."
        yield found.finding(NOTE, text, "anchors", part, ("task", "start", "sync", "sync_seeds"))


def _anchor_at_edge(found: Findings) -> Iterator[Finding]:
    anchors = found.tables["anchors"]
    if not all_usable(anchors):
        return
    for part, row in row_by_row(anchors[anchors["sync_at_edge"].astype(bool)]):
        text = (
            f"{row['task']}: the synchronous runs that rewards are normalized by have the smallest or the largest "
            f"learning rate tried, {learning_rate(row['sync_lr'])}: a better one may lie beyond it."
        )
        yield found.finding(NOTE, text, "anchors", part, ("task", "sync_method", "sync_lr", "sync_at_edge"))


def _uneven_budgets(found: Findings) -> Iterator[Finding]:
    budget = found.tables["budget"]
    if budget.empty:
        return
    lacking = budget[budget["left_out"].map(bool)]
    for _, rows in lacking.groupby([lacking["left_out"].map(tuple), lacking["rates"].map(tuple)]):
        first = rows.iloc[0]
        text = (
            f"{'; '.join(_name(row) for _, row in row_by_row(rows))}: {listed(first['left_out'])} did not run at every "
            f"learning rate of {', '.join(map(learning_rate, first['rates']))}, so there is none to call best."
        )
        yield found.finding(NOTE, text, "budget", rows, (*_PLACE, "rates", "left_out"))
    unequal = budget[~budget["equal_seeds"].astype(bool)]
    if len(unequal):
        text = (
            f"{'; '.join(_name(row) for _, row in row_by_row(unequal))}: methods or learning rates have different "
            "numbers of seeds, so budgets are unequal."
        )
        yield found.finding(NOTE, text, "budget", unequal, (*_PLACE, "equal_seeds"))


def _name(row: Mapping[Any, Any]) -> str:
    return f"{row['task']} at lag {row['staleness']} ({row['regime']})"


def beaten(found: Findings) -> Iterator[Finding]:
    """Which other methods the best one at each lag beats, of those with runs that survived.

    Args:
        found: With tables `ranking` and `pairs`.
    """
    for lag, rows in found.tables["ranking"].groupby("staleness"):
        if rows["runs"].min() < ENOUGH:  # which `limits` says of all lags
            continue
        alive = rows[rows["collapsed"] < rows["scored"]]
        if len(alive):
            yield from _beaten(found, lag, str(alive.iloc[0]["method"]))


def _beaten(found: Findings, lag: object, best: str) -> Iterator[Finding]:
    pairs = found.tables["pairs"]
    here = pairs[(pairs["staleness"] == lag) & ((pairs["first"] == best) | (pairs["second"] == best))]
    others = here["second"].where(here["first"] == best, here["first"])
    enough = decidable(here)
    columns = ("staleness", "first", "second", "estimate", "pairs", "p_holm")
    if not enough.all():
        untested = here[~enough]
        text = f"Lag {lag}: {best} is not compared with {listed(list(others[~enough]))}: {why_not_judged(untested)}."
        yield found.finding(RANKING, text, "pairs", untested, columns, known=False)
    here = here[enough]
    if here.empty:
        return
    beaten: list[str] = []
    better: list[str] = []
    open_: list[str] = []
    for pair, other in zip(here.to_dict("records"), others[enough], strict=True):
        ahead = (pair["estimate"] > 0) == (pair["first"] == best)
        (open_ if pair["p_holm"] >= LEVEL else beaten if ahead else better).append(other)
    parts = [f"is better than {listed(beaten)}"] if beaten else []
    parts += [f"is worse in the mean than {listed(better)}"] if better else []
    parts += [f"cannot be told apart from {listed(open_)}"] if open_ else []
    text = f"Lag {lag}: {best} {'; it '.join(parts)} (paired t tests, Holm-corrected, 5% level)."
    yield found.finding(RANKING, text, "pairs", here, columns)


def tuning(found: Findings) -> Iterator[Finding]:
    """The learning rates chosen at each lag, and whether the search ended at its largest."""
    choices, budget = found.tables["choices"], found.tables["budget"]
    if not were_tuned(found.tables["tuned"]):
        return
    columns = (*_PLACE, "method", "chosen_lr")
    for lag, here in choices.groupby("staleness") if choices["chosen_lr"].nunique() > 1 else ():
        parts = []
        for method, own in here.groupby("method"):
            chosen = [learning_rate(lr) for lr in sorted(own["chosen_lr"].dropna().unique())]
            parts.append(f"{method} {' or '.join(chosen) or 'none'}")
        yield found.finding(TUNING, f"Lag {lag}, chosen learning rates: {', '.join(parts)}.", "choices", here, columns)
    ends = {tuple(row[name] for name in _PLACE): row["rates"] for row in budget.to_dict("records")}
    tried = [ends[place] for place in choices[[*_PLACE]].itertuples(index=False, name=None)]
    for edge, end in (("largest", max), ("smallest", min)):
        at_end = [
            len(set(rates)) > 1 and own == end(rates) for own, rates in zip(choices["chosen_lr"], tried, strict=True)
        ]
        for (rate, where), rows in _where(choices.assign(at_end=at_end)).items():
            methods = listed(sorted(set(rows["method"])))
            named = f"the {edge} learning rate tried, {learning_rate(rate)}"
            text = f"For {methods} {named}, was the best {where}: a better one may lie beyond it."
            yield found.finding(TUNING, text, "choices", rows, columns)


def _where(choices: pd.DataFrame) -> dict[tuple[float, str], pd.DataFrame]:
    """Choices that are `at_end` of the learning rates tried, by the rate and by where they were made."""
    parts: dict[tuple[float, str], list[pd.DataFrame]] = {}
    for (method, _), own in choices[choices["at_end"]].groupby(["method", "chosen_lr"]):
        everywhere = len(own) == (choices["method"] == method).sum()
        lags = listed([f"{lag}" for lag in sorted(set(own["staleness"]))])
        where = "everywhere" if everywhere else f"at lag {lags}, in a part of the seeds or tasks at least"
        parts.setdefault((float(own["chosen_lr"].iloc[0]), where), []).append(own)
    return {name: pd.concat(own).drop(columns="at_end") for name, own in parts.items()}

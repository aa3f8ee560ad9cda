"""The answer at each lag: what it says when it is clear, when it may be chance, and when tasks disagree."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy import special

from vcpo_bench.analysis.comparison.answers import answers, answers_table, disagreements, next_steps, task_rows
from vcpo_bench.analysis.findings import CellsBehind, Findings, agreeing
from vcpo_bench.analysis.intervals import stratified_t

RANKING = pd.DataFrame(
    [(16, "vcpo", 6, 6, 0, 0.9, 0.8, 1.0), (16, "tis", 6, 6, 0, 0.7, 0.6, 0.8)],
    columns=["staleness", "method", "seeds", "runs", "collapsed", "iqm", "iqm_low", "iqm_high"],
).assign(scored=6)
BY_TASK = pd.DataFrame([(16, "walk", "vcpo", 0.64)], columns=["staleness", "task", "method", "reward"])
CHOICES = pd.DataFrame([(16, "vcpo", 3e-4), (16, "vcpo", 1e-4)], columns=["staleness", "method", "chosen_lr"])
PAIR = ["staleness", "first", "second", "estimate", "low", "high", "p", "p_exact", "p_holm", "pairs"]


def pairs(*row: object) -> pd.DataFrame:
    return pd.DataFrame([row], columns=PAIR)


def said(table: pd.DataFrame, by_task: pd.DataFrame | None = None, normalized: bool = False) -> list[str]:
    scores = pd.DataFrame({"key": ["a", "b"], "staleness": [16, 16], "lr": [3e-4, 1e-4]})
    tasks = pd.DataFrame(columns=["staleness", "task", "method", "mean"]) if by_task is None else by_task
    behind: dict[str, CellsBehind] = {name: agreeing(scores, "staleness") for name in ("answers", "by_task", "scores")}
    found = Findings({"answers": table, "scores": scores, "by_task": tasks}, behind)

    def every() -> Iterator[str]:
        yield from (
            one.text for one in (*answers(found, normalized), *disagreements(found), *next_steps(found, normalized))
        )

    return list(every())


def test_a_clear_answer_names_rate_margin_and_chance() -> None:
    table = answers_table(
        RANKING, pairs(16, "tis", "vcpo", -0.2, -0.3, -0.1, 0.001, 0.001, 0.002, 12), CHOICES, BY_TASK
    )
    assert said(table)[0] == (
        "Lag 16: vcpo at learning rate 1e-4 or 3e-4 ends highest, reward 0.90 [0.80, 1.00] (interquartile mean), its "
        "mean 0.20 [0.10, 0.30] above tis, the next: more than chance explains (p = 0.002 after Holm)."
    )
    assert said(table, normalized=True)[0] == (
        "Lag 16: vcpo at learning rate 1e-4 or 3e-4 ends highest, reward 0.64, 90% [80%, 100%] of the synchronous "
        "gain (interquartile mean), its mean 20 [10, 30] points above tis, the next: more than chance explains "
        "(p = 0.002 after Holm)."
    )


def test_what_may_be_chance_asks_for_seeds() -> None:
    pair = pairs(16, "vcpo", "tis", 0.2, -0.1, 0.5, 0.2, 0.2, 0.3, 6)
    text, more = said(answers_table(RANKING, pair, CHOICES, BY_TASK))
    assert "no more than chance explains (p = 0.300 after Holm)" in text
    error = 0.3 / special.stdtrit(5, 0.975) / math.sqrt(2)  # of the difference over twelve seeds
    apart = error * (special.stdtrit(11, 0.975) + special.stdtrit(11, 0.8))
    assert more == (
        "Next: run the same grid with --seeds 12 to tell the best two apart at lag 16 "
        f"if they differ by {apart:.2f} (four times in five)."
    )
    draws = np.random.default_rng(0).normal(apart, error * math.sqrt(12), (2000, 12))
    assert np.mean([stratified_t([one])[3] < 0.05 for one in draws]) == pytest.approx(0.8, abs=0.03)


def test_a_method_whose_mean_is_lower_than_that_of_the_next_is_not_said_to_end_highest() -> None:
    table = answers_table(RANKING, pairs(16, "vcpo", "tis", -0.01, -0.1, 0.1, 0.8, 0.8, 1.0, 12), CHOICES, BY_TASK)
    assert said(table)[0] == (
        "Lag 16: vcpo at learning rate 1e-4 or 3e-4 ends at reward 0.90 [0.80, 1.00] (interquartile mean) and cannot "
        "be told apart from tis, the next (p = 1.000 after Holm); they are not shown to be equivalent within 0.05."
    )


def test_a_runner_up_that_is_ahead_by_more_than_chance_is_not_called_equal() -> None:
    """What the interquartile mean leaves out may be a quarter of the runs that collapsed."""
    table = answers_table(
        RANKING, pairs(16, "tis", "vcpo", 0.24, 0.05, 0.42, 0.014, 0.006, 0.014, 32), CHOICES, BY_TASK
    )
    assert list(table["outcome"]) == ["behind"]
    assert said(table)[0] == (
        "Lag 16: the mean of tis is 0.24 [0.05, 0.42] above that of vcpo, more than chance explains (p = 0.014 after "
        "Holm); without its best and worst quarter of runs, vcpo at learning rate 1e-4 or 3e-4 ends highest, reward "
        "0.90 [0.80, 1.00] (interquartile mean)."
    )
    assert not [text for text in said(table) if "--seeds" in text]


def test_an_unknown_p_is_no_verdict() -> None:
    """One task with a single pair leaves the spread, and with it p, unknown."""
    nan = float("nan")
    table = answers_table(RANKING, pairs(16, "vcpo", "tis", 0.8, nan, nan, nan, 0.004, nan, 9), CHOICES, BY_TASK)
    assert list(table["outcome"]) == ["untested"]


@pytest.mark.parametrize(
    ("count", "words"), [(0, "too few seeds to tell it from tis"), (1, "no other method has a reward")]
)
def test_what_was_not_compared_is_said(count: int, words: str) -> None:
    table = answers_table(RANKING.iloc[: 2 - count], pd.DataFrame(columns=PAIR), CHOICES.iloc[:0], BY_TASK)
    assert words in said(table)[0]
    assert "learning rate" not in said(table)[0]


def test_a_single_learning_rate_asks_for_more_and_is_not_named() -> None:
    table = answers_table(
        RANKING.assign(seeds=1), pairs(16, "vcpo", "tis", 0.2, *[float("nan")] * 5, 1), CHOICES, BY_TASK
    )
    scores = pd.DataFrame({"key": ["a"], "staleness": [16], "lr": [3e-4]})
    found = Findings({"answers": table, "scores": scores}, {"answers": agreeing(scores, "staleness")})
    (answer,), (more,) = answers(found, True), next_steps(found, True)
    assert answer.text == (
        "Lag 16: vcpo ends highest, reward 0.64, 90% [80%, 100%] of the synchronous gain (interquartile mean); too few "
        "seeds to tell it from tis, the next."
    )
    assert more.text == (
        "Next: run the same grid with --seeds 6 to tell the best two apart at lag 16, or with --lr 1e-4,3e-4,9e-4 "
        "to show each method at its best."
    )


@pytest.mark.parametrize(
    ("collapsed", "words", "tried"),
    [
        ([4, 5], "vcpo (4 of 6 runs collapsed) ends highest, reward 0.90 [0.80, 1.00]", "3.3e-3,0.01,0.03"),
        ([4, 6], "vcpo (4 of 6 runs collapsed) ends at reward 0.90 [0.80, 1.00]", "3.3e-3,0.01,0.03"),
        ([6, 5], "tis (5 of 6 runs collapsed) ends at reward 0.70 [0.60, 0.80]", "3.3e-3,0.01,0.03"),
        ([6, 6], "no run survived, so no method is ahead.", "1.1e-3,3.3e-3,0.01"),
    ],
)
def test_survival_comes_before_the_reward(collapsed: list[int], words: str, tried: str) -> None:
    """A run that is dead keeps the reward it had, which is no reward of a method."""
    ranking = RANKING.assign(collapsed=collapsed)
    table = answers_table(ranking, pd.DataFrame(columns=PAIR), CHOICES.iloc[:0], BY_TASK)
    scores = pd.DataFrame({"key": ["a"], "staleness": [16], "lr": [0.01]})
    behind = {name: agreeing(scores, "staleness") for name in ("answers", "ranking")}
    found = Findings({"answers": table, "ranking": ranking, "scores": scores}, behind)
    (answer,), (more,) = answers(found, False), next_steps(found, False)
    assert answer.text.startswith(f"Lag 16: {words}")
    assert ("no run of another method survived" in answer.text) == (6 in collapsed and collapsed != [6, 6])
    assert f"--lr {tried} to " in more.text
    assert ("--seeds" in more.text) == (6 not in collapsed)


def test_a_run_that_ended_in_an_error_is_no_survivor() -> None:
    ranking = RANKING.assign(scored=[5, 6], collapsed=[5, 0])
    table = answers_table(ranking, pd.DataFrame(columns=PAIR), CHOICES.iloc[:0], BY_TASK)
    assert list(table["method"]) == ["tis"]


def test_a_method_with_survivors_is_highest_of_those_although_a_dead_one_has_more() -> None:
    third = pd.DataFrame([RANKING.iloc[1].to_dict() | {"method": "mis", "iqm": 0.5}])
    ranking = pd.concat([RANKING.assign(collapsed=[6, 0]), third], ignore_index=True)
    pair = pairs(16, "tis", "mis", 0.2, 0.1, 0.3, 0.001, 0.001, 0.002, 6)
    text = said(answers_table(ranking, pair, CHOICES.iloc[:0], BY_TASK))[0]
    assert text.startswith("Lag 16: tis ends highest of the methods with runs that survived, reward 0.70")
    assert "its mean 0.20 [0.10, 0.30] above mis, the next" in text


def test_tasks_that_disagree_are_named() -> None:
    columns = ["staleness", "task", "method", "mean"]
    rows = [(16, "chain", "vcpo", 1.0), (16, "chain", "tis", 0.5), (16, "walk", "vcpo", 0.4), (16, "walk", "tis", 0.6)]
    table = answers_table(RANKING, pairs(16, "vcpo", "tis", 0.2, 0.1, 0.3, 0.01, 0.01, 0.01, 12), CHOICES, BY_TASK)
    means = pd.DataFrame(rows, columns=columns)
    led = "vcpo leads on chain (1.00) and tis leads on walk (0.60)"
    for half, disagree in ((float("nan"), True), (0.2, True), (0.3, False)):  # of the intervals; nan: too few seeds
        texts = said(table, means.assign(low=means["mean"] - half, high=means["mean"] + half))
        assert (f"Lag 16: the tasks disagree, so read them one by one: {led}." in texts) == disagree
    assert not any("disagree" in text for text in said(table, means[:2].assign(low=0.0, high=0.0)))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [(-0.04, 0.04, "; they are equivalent within 0.05."), (-0.04, 0.06, "; they are not shown to be equivalent")],
)
def test_what_may_be_chance_is_equivalent_only_if_the_interval_lies_within_the_margin(
    low: float, high: float, words: str
) -> None:
    table = answers_table(RANKING, pairs(16, "vcpo", "tis", 0.0, low, high, 0.9, 0.9, 1.0, 12), CHOICES, BY_TASK)
    assert words in said(table)[0]
    mirrored = answers_table(RANKING, pairs(16, "tis", "vcpo", 0.0, -high, -low, 0.9, 0.9, 1.0, 12), CHOICES, BY_TASK)
    assert words in said(mirrored)[0]


def test_the_methods_of_each_task_are_listed_the_best_first() -> None:
    rows = [
        (16, "walk", "tis", 0.6, 0.5, 0.7),
        (16, "walk", "vcpo", 0.8, 0.7, 0.9),
        (16, "chain", "tis", 0.9, 0.8, 1.0),
    ]
    by_task = pd.DataFrame(rows, columns=["staleness", "task", "method", "mean", "low", "high"])
    found = Findings({"by_task": by_task}, {"by_task": agreeing(by_task.assign(key="a"), "staleness")})
    assert [one.text for one in task_rows(found)] == [
        "Lag 16, chain: tis 0.90 [0.80, 1.00]; walk: vcpo 0.80 [0.70, 0.90], tis 0.60 [0.50, 0.70]."
    ]
    found.tables["by_task"] = by_task[by_task["task"] == "walk"]
    assert not list(task_rows(found)), "one task is what is pooled already"

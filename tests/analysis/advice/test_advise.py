"""Advice for a lag is what the packaged tables say, and no more."""

import math
from importlib import import_module

import pytest

from vcpo_bench.analysis.advice import advise
from vcpo_bench.analysis.advice.tables import Tolerated, earned, published, tolerated
from vcpo_bench.methods import parse_method


def least_share(method: str, lag: int) -> float:
    return min([1.0, *(row.share for row in tolerated() if (row.method, row.lag) == (method, lag))])


@pytest.mark.parametrize(("lag", "studied"), [(2, 4), (4, 4), (8, 16), (16, 16), (17, 64), (64, 64)])
def test_advised_methods_bear_half_of_what_the_best_bears(lag: int, studied: int) -> None:
    found = advise(lag)
    assert found.studied_lag == studied
    shares = [one.share for one in found.use]
    assert shares == sorted(shares, reverse=True)
    assert shares == [least_share(one.method, studied) for one in found.use]
    assert min(shares) >= shares[0] / 2
    assert {one.method for one in found.avoid} == {
        row.method for row in tolerated() if least_share(row.method, studied) < 0.1
    }


def test_what_is_lost_at_the_next_lag_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(
        Tolerated("walk", method, lag, share, "", 0.1, 3)
        for method, shares in (("tis", (1.0, 0.05)), ("clip", (0.9, 0.4)))
        for lag, share in zip((4, 16), shares, strict=True)
    )
    monkeypatch.setattr(import_module("vcpo_bench.analysis.advice.advise"), "tolerated", lambda: rows)
    assert [one.method for one in advise(4).use] == ["clip"]
    assert [one.method for one in advise(4).avoid] == []
    assert [one.method for one in advise(16).avoid] == ["tis"]


def test_the_ends_of_the_ladder_are_said() -> None:
    shares = {(row.method, row.lag): row for row in tolerated() if row.task == "chain"}
    wide = "gspo(high=0.04,low=0.03)"  # over the ladder, says the phase study
    assert {key: row.beyond for key, row in shares.items() if row.beyond} == {
        ("reinforce", 64): "under",
        (wide, 16): "over",
        (wide, 64): "over",
    }
    assert shares[wide, 16].share == shares[wide, 64].share > 1
    assert wide not in [one.method for one in advise(16).avoid]


def test_what_survives_but_ends_below_its_start_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(
        Tolerated(task, method, 16, share, "", change, 3)
        for method, share, changes in (("vcpo", 1.0, (0.2, -0.1)), ("vespo", 0.6, (0.2, 0.1)))
        for task, change in zip(("chain", "walk"), changes, strict=True)
    )
    monkeypatch.setattr(import_module("vcpo_bench.analysis.advice.advise"), "tolerated", lambda: rows)
    found = advise(16)
    assert [one.method for one in found.use] == ["vespo"]
    assert [(one.method, "below its start on walk" in one.but) for one in found.aside] == [("vcpo", True)]


def test_bounds_of_a_mean_over_tokens_are_advised_for_lengths_that_were_studied() -> None:
    wide = "gspo(high=0.04,low=0.03)"
    assert wide in [one.method for one in advise(16, 24).use]
    for length in (None, 25, 2000):
        found = advise(16, length)
        assert wide not in [one.method for one in found.use]
        assert wide in [one.method for one in found.aside]


@pytest.mark.parametrize(("lag", "earned_lag"), [(0, 0), (1, 1), (3, 16), (100, 128)])
def test_rewards_are_those_of_the_next_lag_that_was_run(lag: int, earned_lag: int) -> None:
    found = advise(lag)
    assert found.earned_lag == earned_lag
    assert set(found.earned) == {row for row in earned() if row.lag == earned_lag}
    assert found.earned[0].reward == max(row.reward for row in found.earned)


@pytest.mark.parametrize("lag", [0, 1, 65, 129, 100_000])
def test_nothing_is_advised_where_no_study_speaks(lag: int) -> None:
    found = advise(lag)
    assert found.studied_lag is None
    assert found.use == found.avoid == ()
    assert bool(found.earned) == (lag <= 128)
    assert found.published


def test_the_nearest_published_lag_comes_first() -> None:
    found = advise(128)
    assert [row.lag for row in found.published[0]] == [128]
    distances = [abs(math.log(129 / (1 + rows[0].lag))) for rows in found.published]
    assert distances == sorted(distances)


def test_at_equal_lags_the_nearest_length_comes_first() -> None:
    assert {rows[0].lag for rows in advise(10).published[:2]} == {10}
    short, long = (advise(0, length).published[0][0].tokens for length in (500, 50_000))
    assert short == min(row.tokens for row in published() if row.lag == 0 and row.tokens)
    assert long == max(row.tokens for row in published() if row.lag == 0 and row.tokens)


@pytest.mark.parametrize("lag", [1, 8, 64, 256])
def test_methods_of_one_comparison_stand_together(lag: int) -> None:
    shown = advise(lag).published
    assert len({(one.paper, one.model, one.task, one.lag) for rows in shown for one in rows}) == len(shown)
    for rows in shown:
        assert len({(row.source, row.lag_is, row.tokens) for row in rows}) == 1
        assert len({row.method for row in rows}) == len(rows)


def test_the_length_gives_an_ess_of_normal_log_ratios() -> None:
    assert advise(8).predicted_ess is None
    assert advise(8, 2000).predicted_ess == pytest.approx(math.exp(-2))


def test_no_target_is_advised_below_the_gap_of_sampler_and_trainer() -> None:
    assert [advise(8, length).kl_target for length in (None, 241)] == [None, None]
    assert advise(8, 239).kl_target == pytest.approx(0.12 / 239)


def test_every_published_row_names_its_source_and_a_method_that_can_be_run() -> None:
    assert len(published()) >= 40
    for row in published():
        assert row.source
        assert row.figure
        assert row.outcome in ("rises", "unstable", "collapses")
        assert row.lag_is in ("fixed", "at most", "sawtooth")
        parse_method(row.method)

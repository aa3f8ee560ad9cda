import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.collapse.stable_learning_rates import _effective_runs, frontier, stable_rates

RATES = (3e-5, 1e-4, 3e-4, 1e-3)


def cells(limit, lags=(1, 4, 16, 64), rates=RATES, seeds=10, methods=("a",), noise=0.0, seed=0):
    """Cells that fail where the rate is above `limit(method, lag)`, up to lognormal noise."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "task": "chain",
            "regime": "fifo",
            "method": method,
            "staleness": lag,
            "lr": lr,
            "seed": one,
            "event": "healthy",
        }
        | {"collapsed": bool(lr * np.exp(rng.normal(0, noise)) > limit(method, lag))}
        for method in methods
        for lag in lags
        for lr in rates
        for one in range(seeds)
    ]
    table = pd.DataFrame(rows)
    return table.assign(onset=np.where(table["collapsed"], table["staleness"] + 20, np.nan))


def test_the_largest_stable_rate_and_its_reading():
    table = stable_rates(cells(lambda method, lag: 2e-3 / lag)).set_index("staleness")
    assert table.loc[1, "reading"] == "at least 1e-3"
    assert table.loc[4, "reading"] == "between 3e-4 and 1e-3"
    assert table.loc[16, "stable_rate"] == 1e-4
    assert table.loc[64, "reading"] == "below 3e-5, the smallest tried" or table.loc[64, "stable_rate"] == 3e-5
    assert table.loc[16, "collapsed_high"] == pytest.approx(0.28, abs=0.01)


def test_stability_means_every_smaller_rate_is_stable_too():
    table = cells(lambda method, lag: 1.0, lags=(16,))
    table.loc[table["lr"] == 1e-4, "collapsed"] = True
    assert stable_rates(table)["stable_rate"].item() == 3e-5


def test_where_no_rate_is_stable_nothing_failed_there():
    row = stable_rates(cells(lambda method, lag: 0.0, lags=(16,))).iloc[0]
    assert row["reading"] == "below 3e-5, the smallest tried"
    assert row[["stable_rate", "collapsed", "total", "collapsed_high"]].isna().all()


def test_a_minority_of_failures_is_tolerated():
    table = cells(lambda method, lag: 1.0, lags=(16,))
    table.loc[(table["lr"] == 1e-3) & (table["seed"] < 3), "collapsed"] = True
    assert stable_rates(table)["stable_rate"].item() == 1e-3
    table.loc[(table["lr"] == 1e-3) & (table["seed"] < 4), "collapsed"] = True
    assert stable_rates(table)["stable_rate"].item() == 3e-4


def test_a_third_is_too_many():
    table = cells(lambda method, lag: 1.0, lags=(16,), seeds=9)
    table.loc[(table["lr"] == 1e-3) & (table["seed"] < 3), "collapsed"] = True
    assert stable_rates(table)["stable_rate"].item() == 3e-4


def test_runs_the_rule_does_not_apply_to_say_nothing():
    table = cells(lambda method, lag: 1.0, lags=(16,)).assign(event="not applicable")
    assert stable_rates(table).empty
    assert frontier(table).empty


@pytest.mark.parametrize("exponent", [0.5, 1.0])
def test_the_exponent_is_recovered(exponent):
    table = frontier(cells(lambda method, lag: 2e-3 * lag**-exponent, noise=0.5, seeds=20))
    row = table.iloc[0]
    assert row["exponent"] == pytest.approx(exponent, abs=0.15)
    assert row["low"] < exponent < row["high"]
    assert row["high"] - row["low"] < 0.6


@pytest.mark.parametrize(("shared", "own"), [(0.7, 0.0), (0.0, 0.5)])
def test_intervals_cover_whether_seeds_share_their_fate_or_not(shared, own):
    """Grids of 40 configurations with 10 seeds each; with seeds taken for independent the first covers 14 of 40."""
    hits = 0
    for number in range(40):
        table = cells(lambda method, lag: 2e-3 / lag, rates=np.geomspace(1e-5, 2e-3, 10))
        rng = np.random.default_rng(number)
        luck = np.repeat(rng.normal(0, shared, 40), 10) + rng.normal(0, own, 400)
        table["collapsed"] = table["lr"] * np.exp(luck) > 2e-3 / table["staleness"]
        row = frontier(table).iloc[0]
        hits += row["low"] <= 1 <= row["high"]
    assert hits >= 32


def test_failures_before_the_lag_are_counted():
    table = cells(lambda method, lag: 2e-3 / lag).assign(onset=lambda made: np.where(made["collapsed"], 20, np.nan))
    row = frontier(table).iloc[0]
    assert row["early"] == (table["collapsed"] & (table["staleness"] == 64)).sum() > 0
    assert row["collapsed"] > row["early"]


def test_a_coarse_grid_only_bounds_the_exponent():
    row = frontier(cells(lambda method, lag: 2e-4 / lag**0.4, rates=(1e-4, 3e-4), lags=(1, 16))).iloc[0]
    assert row["low"] < 0.4 < row["high"]
    assert row["high"] == np.inf  # any exponent that fails both rates at lag 16 and one at lag 1 fits


def test_a_limit_that_rises_is_unbounded_below():
    row = frontier(cells(lambda method, lag: 2e-5 * lag**2)).iloc[0]
    assert row["low"] == -np.inf
    assert row["high"] < 0.5
    few = frontier(cells(lambda method, lag: 2e-4 * lag, rates=(1e-4, 3e-4), lags=(1, 16))).iloc[0]
    assert (few["low"], few["high"]) == (-np.inf, np.inf), "four configurations bound nothing"


def test_three_configurations_are_too_few():
    three = cells(lambda method, lag: 2e-4 / lag, rates=(1e-4, 3e-4), lags=(1, 16)).query("lr < 2e-4 or staleness > 1")
    assert frontier(three)["reason"].item() == "too few configurations"


def test_one_exponent_for_all_with_an_intercept_each():
    table = frontier(cells(lambda method, lag: {"a": 1e-3, "b": 4e-3}[method] / lag, methods=("a", "b"), noise=0.5))
    together = table.set_index("method").loc["(all)"]
    assert together["exponent"] == pytest.approx(1, abs=0.2)
    assert together["cells"] == 2 * 160


def test_no_exponent_where_the_data_cannot_say():
    assert frontier(cells(lambda *_: 2e-4, lags=(16,)))["reason"].item() == "only one lag"
    assert frontier(cells(lambda *_: 2e-4, rates=(3e-4,)))["reason"].item() == "only one learning rate"
    assert "fewer than 5" in frontier(cells(lambda *_: 1.0))["reason"].item()
    backwards = cells(lambda *_: 2e-4).assign(collapsed=lambda table: ~table["collapsed"])
    assert "more likely" in frontier(backwards)["reason"].item()


def test_regimes_are_kept_apart():
    """Three regimes in which nothing fails do not make a rate stable at which every fifo run fails."""
    fifo = cells(lambda method, lag: 3e-4, lags=(16,))
    others = [cells(lambda method, lag: 1.0, lags=(16,)).assign(regime=name) for name in ("random", "minibatch")]
    table = stable_rates(pd.concat([fifo, *others], ignore_index=True)).set_index("regime")["stable_rate"]
    assert dict(table) == {"fifo": 3e-4, "random": 1e-3, "minibatch": 1e-3}


def test_a_regime_that_fails_at_other_rates_does_not_move_the_exponent():
    def limit(method, lag):
        return 3e-3 / lag

    one = cells(limit, noise=0.3)
    other = cells(lambda method, lag: 8 * limit(method, lag), noise=0.3, seed=1).assign(regime="random")
    alone, both = (frontier(table).iloc[0] for table in (one, pd.concat([one, other], ignore_index=True)))
    assert both["low"] < 1 < both["high"]
    assert both["high"] - both["low"] < alone["high"] - alone["low"]


@pytest.mark.parametrize(
    ("failed", "counted"),
    [
        (([0, 0, 0], [1, 0, 0]), 1.8),  # within 1, expected 2 * 3 * 0.25: r = 1/3, and 3 / (1 + 2 r)
        (([0, 0, 0], [1, 1, 1]), 1.0),  # all or none: a configuration is one run
        (([1, 0, 0], [1, 1, 0]), 3.0),  # more within than chance gives: seeds are runs of their own
        (([0, 0, 0], [1, 0, 0], [1, 1, 0]), 3 / (1 + 2 / 9)),  # within 2, expected 3 * 3 * 0.25: r = 1/9
    ],
)
def test_as_how_many_runs_seeds_count(failed: tuple[list[int], ...], counted: float) -> None:
    """Kish's design effect, with a predicted share of failures of one half everywhere."""
    table = pd.DataFrame({"share": [np.mean(one) for one in failed], "size": [float(len(one)) for one in failed]})
    assert _effective_runs(table, np.zeros(len(table))) == pytest.approx([counted] * len(table))
    alone = pd.concat([table, pd.DataFrame({"share": [1.0], "size": [1.0]})], ignore_index=True)
    assert _effective_runs(alone, np.zeros(len(alone))) == pytest.approx([counted] * len(table) + [1.0])

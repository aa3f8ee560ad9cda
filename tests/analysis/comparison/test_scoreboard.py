import numpy as np
import pandas as pd
import pytest

from vcpo_bench.analysis.comparison.normalized_rewards import normalize
from vcpo_bench.analysis.comparison.scoreboard import cell_summary, scoreboard, write_csv
from vcpo_bench.analysis.results import load
from vcpo_bench.analysis.series import first_long_streak, trailing_mean


def test_trailing_mean_of_short_prefixes_and_gaps():
    assert trailing_mean([1, 3, 5, 7], 2).tolist() == [1, 2, 4, 6]
    assert trailing_mean([np.nan, 2, np.nan, 4], 2).tolist()[1:] == [2, 2, 4]
    assert np.isnan(trailing_mean([np.nan, 2], 2)[0])


def test_first_long_streak():
    assert first_long_streak([0, 1, 1, 0, 1, 1, 1], 3) == 4
    assert first_long_streak([1, 1, 1, 1], 3) == 0
    assert first_long_streak([1, 1, 0, 1], 3) is None


def test_scoreboard_of_known_curves(tmp_path, make_results):
    results = load(
        make_results(tmp_path, methods=("vcpo", "tis", "mis"), steps=200, shapes={"mis": "nan"} | {"tis": "collapsed"})
    )
    board = scoreboard(results).set_index(["method", "staleness"])
    assert board.loc[("tis", 16), "collapsed"] == 3
    assert board.loc[("vcpo", 16), "collapsed"] == 0
    assert board.loc[("mis", 16), "nan"] == 3
    assert board["total"].eq(3).all()
    assert board.loc[("vcpo", 16), "final_reward"] == pytest.approx(0.72, abs=0.04)
    assert board.loc[("tis", 16), "final_reward"] < 0.05 < 0.4 < board.loc[("tis", 16), "best_reward"]
    assert board.loc[("vcpo", 16), "lag_max"] == 16
    assert board.loc[("reinforce", 0), "control"]
    onset = cell_summary(results).set_index("method").loc["tis", "onset"]
    assert onset.between(70, 100).all()
    assert board["lag_at_onset"].isna().tolist() == (board["collapsed"] == 0).tolist()
    steps = results.steps.set_index(["key", "step"])["lag_mean"]
    cells = cell_summary(results)
    for _, cell in cells[cells["collapsed"]].iterrows():
        assert cell["lag_at_onset"] == steps[cell["key"], int(cell["onset"]) - 1]


def test_an_error_cell_counts_but_does_not_score(tmp_path, make_results):
    folder = make_results(
        tmp_path, lags=(16,), steps=60, shapes=lambda m, lag, seed: "error" if m == "tis" and seed == 0 else "healthy"
    )
    row = scoreboard(load(folder)).set_index("method").loc["tis"]
    assert (row["error"], row["seeds"], row["total"]) == (1, 2, 3)


@pytest.mark.parametrize(("seeds", "shown"), [(5, False), (6, True)])
def test_intervals_are_shown_from_six_seeds_on(tmp_path, make_results, seeds, shown):
    board = scoreboard(load(make_results(tmp_path, methods=("vcpo",), lags=(16,), seeds=range(seeds), steps=40)))
    assert board["final_reward_low"].notna().all() == shown
    if shown:
        assert (board["final_reward_low"] < board["final_reward"]).all()
        assert (board["final_reward"] < board["final_reward_high"]).all()


def test_the_final_reward_is_the_mean_of_the_last_three_evaluations(tmp_path, make_results):
    results = load(make_results(tmp_path, methods=("vcpo",), lags=(16,), seeds=(0,), steps=60, controls=False))
    (final,) = scoreboard(results)["final_reward"]
    assert final == pytest.approx(results.evals.sort_values("step")["sampled_reward"].tail(3).mean())
    assert final == normalize(results).table["score"].item()


def test_learning_rates_and_tasks_are_rows(tmp_path, make_results):
    board = scoreboard(
        load(make_results(tmp_path, lags=(1,), seeds=(0,), steps=20, tasks=("chain", "walk"), lrs=(1e-4, 3e-4)))
    )
    assert len(board) == 2 * 2 * 4
    assert board.groupby(["task", "lr"]).ngroups == 4


def test_csv_round_trip(tmp_path, make_results):
    board = scoreboard(load(make_results(tmp_path / "r", steps=40)))
    write_csv(board, tmp_path / "scoreboard.csv")
    again = pd.read_csv(tmp_path / "scoreboard.csv")
    assert list(again) == list(board)
    assert again["final_reward"].to_numpy() == pytest.approx(board["final_reward"].to_numpy(), rel=1e-5)

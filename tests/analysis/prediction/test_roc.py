"""ROC curves are the distribution of the placements whose mean is the AUROC."""

from __future__ import annotations

import numpy as np
import pytest

from vcpo_bench.analysis.prediction.landmarks import Comparison
from vcpo_bench.analysis.prediction.roc import RATES, roc_band, roc_curve


def comparison(wins: list[list[float]]) -> Comparison:
    """Cases 0, 1, ... against controls that follow them; `wins` as in `Comparison`, of the controls only."""
    cases, controls = len(wins), len(wins[0])
    usable = np.hstack([np.zeros((cases, cases), dtype=bool), np.ones((cases, controls), dtype=bool)])
    table = np.hstack([np.zeros((cases, cases)), np.array(wins)]).astype(np.float32)
    return Comparison(np.arange(cases), usable, table, np.zeros(cases, dtype=np.int64))


def at(curve: np.ndarray, rate: float) -> float:
    return float(curve[np.flatnonzero(np.isclose(RATES, rate))[0]])


def test_a_curve_by_hand() -> None:
    curve = roc_curve(comparison([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]))  # false alarms 0, 0.5, 0.75
    assert [at(curve, rate) for rate in (0.0, 0.49, 0.5, 0.74, 0.75, 1.0)] == pytest.approx(
        [1 / 3, 1 / 3, 2 / 3, 2 / 3, 1, 1]
    )


def test_the_area_is_the_auroc() -> None:
    one = comparison((np.random.default_rng(0).random((30, 20)) < 0.7).astype(float).tolist())
    steps = np.diff(RATES) @ roc_curve(one)[:-1]
    assert steps == pytest.approx(one.auroc(), abs=1 / len(RATES))


def test_the_band_holds_the_curve_and_closes_where_all_are_found() -> None:
    one = comparison((np.random.default_rng(1).random((12, 9)) < 0.6).astype(float).tolist())
    draws = np.random.default_rng(2).multinomial(21, np.full(21, 1 / 21), 400).astype(float)
    low, high = roc_band(one, draws, np.arange(21))
    curve = roc_curve(one)
    assert ((low <= curve) & (curve <= high)).all()
    assert (low < high).any()
    assert low[-1] == high[-1] == 1.0
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()


def test_runs_that_were_not_drawn_do_not_count() -> None:
    one = comparison([[1, 1], [0, 0]])
    only_first = np.array([[1.0, 0.0, 1.0, 1.0]])
    low, high = roc_band(one, only_first, np.arange(4))
    assert low[0] <= high[0] == 1.0

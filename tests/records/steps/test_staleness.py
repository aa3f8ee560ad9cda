"""Realized lags of one consumed batch."""

from collections.abc import Callable

import numpy as np
import pytest

from vcpo_bench.records.step_facts import StepFacts


def test_lag_is_counted_from_the_oldest_generated_token(
    facts: Callable[..., StepFacts], value: Callable[[str, StepFacts], float]
) -> None:
    version = np.array([[3, 4, 0], [5, 5, 5]])
    mask = np.array([[True, True, False], [True, True, True]])
    seen = facts(np.zeros((2, 3)), step=6, version=version, mask=mask)
    names = ("lag_min", "lag_mean", "lag_max", "version_oldest", "version_newest", "version_mean")
    expected = [1, (3 + 2 + 1 + 1 + 1) / 5, 3, 3, 5, (3 + 4 + 5 + 5 + 5) / 5]
    assert [value(name, seen) for name in names] == pytest.approx(expected)
    assert seen.lags.tolist() == [3, 1]
    assert facts(np.zeros((2, 3)), step=5, version=version, mask=mask).lags.tolist() == [2, 0]
    assert {type(value(name, seen)) for name in ("lag_min", "lag_max", "version_oldest", "version_newest")} == {int}

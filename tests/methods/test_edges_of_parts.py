"""Rows that are not in play, the last value of a quantile, and weights near the largest number."""

from collections.abc import Callable

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method
from vcpo_bench.methods.core.drift import over_rows
from vcpo_bench.methods.core.ess import ess_ratio
from vcpo_bench.methods.parts.opob import Opob, _weighted_quantile

Make = Callable[..., Batch]


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_ess_does_not_depend_on_the_size_of_the_weights(size: float) -> None:
    weight = size * torch.tensor([[1.0, 1.0, 2.0, 0.0]], dtype=torch.float64)
    assert float(ess_ratio(weight, torch.ones(1, 4, dtype=torch.bool))) == pytest.approx(16 / (6 * 4))


@pytest.mark.parametrize(("level", "expected"), [(0.05, 1.0), (0.5, 2.0), (0.51, 3.0), (0.95, 4.0), (1.0, 4.0)])
def test_a_quantile_reaches_the_largest_value(level: float, expected: float) -> None:
    value = torch.tensor([[3.0, 1.0, 4.0, 2.0]] * 3, dtype=torch.float64)
    found = _weighted_quantile(torch.zeros_like(value), value, level)
    assert found.tolist() == [expected] * 3


def test_rows_that_are_not_in_play_have_no_advantage_and_no_drift(make_rows: Make) -> None:
    valid = torch.tensor([[True, True, False, True]])
    reward = torch.tensor([[1.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
    batch = make_rows([[0.0]] * 4, [1.0] * 4, valid=valid, reward=reward)
    batch.mask[0, 3] = False
    ev = parse_method("reinforce").evidence(batch)
    assert float(Opob().advantage(ev)[0, 2]) == 0.0
    moved = torch.tensor([[1.0, 3.0, 50.0, 70.0]], dtype=torch.float64)
    assert float(over_rows(ev, moved, "max")) == 3.0
    assert float(over_rows(ev, moved, "mean")) == 2.0


@pytest.mark.parametrize("rows", ["freshest", "max-lag"])
def test_parts_that_judge_rows_act_before_those_that_judge_groups(rows: str) -> None:
    for text in (f"clip+goldilocks+{rows}", f"sampo+{rows}"):
        admissions = parse_method(text).parts.admissions
        assert len(admissions) > 1
        assert admissions[0].name == rows

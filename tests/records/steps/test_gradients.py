"""Gradient diagnostics, on plain arrays."""

import math
from dataclasses import dataclass

import pytest

from vcpo_bench.records.steps import DIAGNOSTICS
from vcpo_bench.records.steps.gradients import COLUMNS

COSINE, HEAD = COLUMNS


@dataclass
class View:
    flat: object = None
    previous: object = None
    head: object = None
    head_norm: float = math.nan
    dots: tuple[float, float, float] = (math.nan, math.nan, math.nan)


def test_cosine_of_consecutive_gradients() -> None:
    assert COSINE.measure(View(dots=(4.0, 3.0, 9.0))) == pytest.approx(0.5)
    assert math.isnan(COSINE.measure(View(dots=(4.0, 0.0, 0.0))))
    assert math.isnan(COSINE.measure(View()))


def test_norm_of_the_head() -> None:
    assert HEAD.measure(View(head_norm=5.0)) == 5.0
    assert math.isnan(HEAD.measure(View()))


def test_a_step_without_a_finite_gradient_is_nan(facts: object) -> None:
    for name in ("grad_cosine", "head_grad_norm"):
        assert math.isnan(DIAGNOSTICS[name].compute(facts()))
        assert DIAGNOSTICS[name].compute(facts(measured={name: 0.25})) == 0.25

"""Gauges in a trainer's log say what the method at work says."""

import numpy as np
import pytest
import torch

from vcpo_bench.adapters.coefficients import Coefficients, StepRows
from vcpo_bench.adapters.gauges import QUANTILES, WeightGauges, by_row
from vcpo_bench.methods import parse_method
from vcpo_bench.records.step_facts import StepFacts
from vcpo_bench.records.steps import DIAGNOSTICS


@pytest.mark.parametrize("empty", [0, 12])
def test_the_ess_of_the_monitor_is_that_of_the_method(empty: int) -> None:
    """Some trainers mask all tokens of a truncated response."""
    behavior = torch.full((16, 3), -1.0)
    logp = behavior + 0.3 * torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    logp[0] += 2.0
    mask = torch.ones(16, 3, dtype=torch.bool)
    mask[16 - empty :] = False
    zeros = torch.zeros(16, dtype=torch.int64)
    rows = StepRows(logp=logp, behavior_logp=behavior, mask=mask, reward=torch.rand(16), group=zeros, version=zeros)
    decided = Coefficients(parse_method("tis"), 3).decide(rows, 1)
    _, numbers = WeightGauges([]).read(by_row(behavior, logp, mask), None, None)
    assert numbers["monitor/n"] == 16 - empty
    assert numbers["monitor/ess"] == pytest.approx(decided.metrics["ess_ratio"], rel=1e-5)


@pytest.mark.parametrize("far", [0.0, 100.0])
def test_the_gauges_are_the_columns_of_a_cell(far: float) -> None:
    """Also where a token has become e^100 times likelier, which no float32 holds."""
    behavior = torch.full((16, 3), -200.0)
    logp = behavior + 0.3 * torch.randn(16, 3, generator=torch.Generator().manual_seed(0))
    logp[0, 1] += far
    mask = torch.ones(16, 3, dtype=torch.bool)
    mask[5, 2:] = False
    version = np.zeros((16, 3), dtype=np.int64)
    facts = StepFacts(0, (logp.double() - behavior.double()).numpy(), mask.numpy(), version, np.zeros((16, 3)))
    column = {name: DIAGNOSTICS[name].compute(facts) for name in ("ess_ratio", *QUANTILES, "log_weight_var")}
    reading, numbers = WeightGauges([]).read(by_row(behavior, logp, mask), None, None)
    assert reading.ess == pytest.approx(column["ess_ratio"], rel=1e-4)
    assert reading.log_weight_var == pytest.approx(column["log_weight_var"], rel=1e-4)
    assert [numbers[f"monitor/{name}"] for name in QUANTILES] == pytest.approx(
        [column[one] for one in QUANTILES], rel=1e-3
    )
    per_token, length = (DIAGNOSTICS[name].compute(facts) for name in ("kl_mu_theta_k3", "length_mean"))
    assert isinstance(per_token, float)
    assert isinstance(length, float)
    assert reading.kl_length == pytest.approx(per_token * length, rel=1e-3)


def test_a_batch_without_tokens_has_equal_weights() -> None:
    nothing = torch.zeros(4, 3)
    reading, numbers = WeightGauges([]).read(by_row(nothing, nothing, nothing.bool()), 0.5, None)
    assert (reading.n, numbers["monitor/ess"]) == (4, 1.0)


def test_what_fails_while_looking_is_said_once_and_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    gauges, looks = WeightGauges([]), []

    def look() -> None:
        looks.append(gauges.read(torch.zeros(0, 3), None, None))

    for _ in range(2):
        gauges.attempt(look)
    assert gauges.off
    assert not looks
    (record,) = caplog.records
    assert "the monitor is off for the rest of this run: ValueError: log_weights is empty" in record.getMessage()


def test_a_weight_without_bounds_is_counted_and_no_warning() -> None:
    behavior = torch.full((8, 3), -1.0)
    logp = behavior.clone()
    behavior[0, 0], logp[1, 0] = -torch.inf, -torch.inf
    reading, numbers = WeightGauges([]).read(by_row(behavior, logp, torch.ones(8, 3, dtype=torch.bool)), 0.5, None)
    assert reading.nonfinite == 1
    assert numbers["monitor/log_weight_q50"] == 0

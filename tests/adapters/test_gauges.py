"""Gauges in a trainer's log say what the method at work says."""

import pytest
import torch

from vcpo_bench.adapters.coefficients import Coefficients, StepRows
from vcpo_bench.adapters.gauges import WeightGauges, by_row
from vcpo_bench.methods import parse_method


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


def test_a_batch_without_tokens_has_equal_weights() -> None:
    nothing = torch.zeros(4, 3)
    reading, numbers = WeightGauges([]).read(by_row(nothing, nothing, nothing.bool()), 0.5, None)
    assert (reading.n, numbers["monitor/ess"]) == (4, 1.0)

"""The crossing found without a full sort is the one a full sort gives."""

import pytest
import torch

from vcpo_bench.methods.core.selection import first_crossing


@pytest.mark.parametrize("count", [1, 5, 1000, 70_000])
@pytest.mark.parametrize("budget", [0.0, 0.01, 0.3, 0.9, 5.0])
def test_the_largest_prefix_with_a_small_mean(count: int, budget: float) -> None:
    generator = torch.Generator().manual_seed(count)
    value = torch.randn(count, generator=generator, dtype=torch.float64) ** 2
    ordered, place = first_crossing(value, lambda _, number, total: total > budget * number)
    means = value.sort().values.cumsum(0) / torch.arange(1, count + 1)
    kept = int((means <= budget).sum())
    expected = value.sort().values[kept - 1] if kept else None
    assert (expected is None) == (place == 0)
    if expected is not None:
        assert float(ordered[place - 1]) == pytest.approx(
            float(expected), rel=1e-12
        )  # sums of some thousand numbers, in two orders


def test_ties_and_constants_do_not_confuse_it() -> None:
    value = torch.cat([torch.full((40_000,), 2.0), torch.full((40_000,), 1.0)]).double()
    ordered, place = first_crossing(value, lambda _, number, total: total > 1.25 * number)
    assert float(ordered[place - 1]) == 2.0
    ordered, place = first_crossing(value, lambda _, number, total: total > 1.0 * number)
    assert float(ordered[place - 1]) == 1.0

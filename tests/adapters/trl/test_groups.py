"""Rows of one rank in an order that keeps prompts whole."""

import pytest
import torch

from vcpo_bench.adapters.trl.groups import order_of_rows


@pytest.mark.parametrize(("rows", "windows", "group"), [(16, 1, 4), (16, 2, 4), (16, 4, 4), (24, 3, 4), (12, 3, 8)])
def test_it_is_a_permutation(rows: int, windows: int, group: int) -> None:
    assert sorted(order_of_rows(rows, windows, group).tolist()) == list(range(rows))


@pytest.mark.parametrize(("rows", "windows", "group"), [(16, 2, 4), (24, 3, 4), (32, 2, 8)])
def test_every_window_holds_whole_groups_in_random_order(rows: int, windows: int, group: int) -> None:
    torch.manual_seed(0)
    orders = [order_of_rows(rows, windows, group) for _ in range(20)]
    for order in orders:
        for part in order.chunk(windows):
            assert set(torch.bincount(part // group).tolist()) <= {0, group}
    assert len({tuple(order.tolist()) for order in orders}) == 20
    assert any((order[: rows // windows].sort().values != order[: rows // windows]).any() for order in orders)


def test_one_optimizer_step_shuffles_as_trl_does() -> None:
    torch.manual_seed(3)
    ours = order_of_rows(16, 1, 4)
    torch.manual_seed(3)
    assert torch.equal(ours, torch.randperm(16))

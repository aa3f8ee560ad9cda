"""Layers without a rule: whatever they are called with, a wrong split of their arguments is never believed."""

import pytest
import torch
from score_norms_layers import Attention, Tabled, WithTable
from score_norms_net import D, Net, Through, V, log_softmax_of
from score_norms_oracle import check, recorded, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.score_norms.fallback import splits

T = 7


MIDDLES = {"table": WithTable, "table that counts nothing yet": lambda: WithTable(0.0), "causal attention": Attention}


@pytest.mark.parametrize("rows", [1, 5, T], ids="B = {}".format)
@pytest.mark.parametrize("name", MIDDLES)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_arguments_that_all_trajectories_share(name: str, rows: int) -> None:
    """With as many trajectories as positions, tables and masks look as if they had one row per trajectory."""
    model, tokens = Net(MIDDLES[name]()).double(), torch.randint(V, (rows, T))
    with pytest.warns(UserWarning, match=r"torch\.func\.vmap"):
        check(model, lambda: log_softmax_of(model, tokens))


@pytest.mark.filterwarnings(r"ignore:no score-norm rule .* torch\.func\.vmap")
def test_a_coincidence_in_a_later_batch() -> None:
    model = Net(WithTable())
    norms = ScoreNorms(model)
    for rows in (5, T):
        with norms.record():
            logp = log_softmax_of(model, torch.randint(V, (rows, T)))
        expected = slow_norms(model, logp.sum(1))
        torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_splits_are_judged_relative_to_the_gradients(factor: float) -> None:
    model, tokens = Net(WithTable()).double(), torch.randint(V, (T, T))
    with pytest.warns(UserWarning, match=r"torch\.func\.vmap"):
        check(model, lambda: factor * log_softmax_of(model, tokens))


def test_arguments_that_cannot_be_split_take_a_backward_pass_each() -> None:
    class ThreeTables(Tabled):
        def forward(self, x: Tensor, *tables: Tensor) -> Tensor:
            return super().forward(x, tables[0] + tables[1] * tables[2])

    def way(middle: Through, x: Tensor) -> Tensor:
        return middle.layer(x, *torch.linspace(-1, 1, 3 * T * D, dtype=x.dtype).view(3, T, D))

    model = Net(Through(way, layer=ThreeTables())).double()
    for rows, message in ((5, "vmap"), (T, f"{T} for this batch.*ThreeTables has no rule.*do not add up.*RuledLayer")):
        tokens = torch.randint(V, (rows, T))
        with pytest.warns(UserWarning, match=message):
            check(model, lambda: log_softmax_of(model, tokens))  # noqa: B023 - called at once


def test_a_graph_freed_by_a_later_batch_is_still_there_to_fall_back_on() -> None:
    """The split fails only once the backward pass runs: the same batch must still get its exact norms."""

    class Late(Tabled):
        honest = True

        def forward(self, x: Tensor, table: Tensor) -> Tensor:
            return super().forward(x if self.honest else x * torch.rand(()), table)

    model = Net(WithTable()).double()
    model.middle.layer = Late().double()
    norms, tokens = ScoreNorms(model), torch.randint(V, (5, T))
    for honest, message in ((True, "vmap"), (False, "5 for this batch")):
        model.middle.layer.honest = honest
        with norms.record():
            logp = log_softmax_of(model, tokens)
        expected = slow_norms(model, logp.sum(1))
        with pytest.warns(UserWarning, match=message):
            torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-10, atol=0)


@pytest.mark.parametrize("way", ["layer", "autocast"])
def test_half_precision_is_recomputed_in_float32(way: str) -> None:
    model, tokens = Net(nn.Sequential(nn.PReLU(), WithTable())), torch.randint(V, (T, T))
    norms = ScoreNorms(model.bfloat16() if way == "layer" else model)
    with torch.autocast("cpu", torch.bfloat16, enabled=way == "autocast"), norms.record():
        logp = log_softmax_of(model, tokens).float()
    expected = slow_norms(model, logp.sum(1))
    with pytest.warns(UserWarning, match=r"no score-norm rule for PReLU, Tabled.*vmap"):
        squared = norms.squared_norms(logp)
    assert squared.dtype is torch.float32
    torch.testing.assert_close(squared, expected.float(), rtol=3e-2, atol=0)


def test_splits_are_tried_in_order_of_what_is_shared() -> None:
    leaves = [torch.zeros(3, 2), 5, torch.zeros(2, 3), torch.zeros(3), torch.zeros(())]
    assert list(splits(leaves, 3)) == [
        [True, False, False, True, False],
        [False, False, False, True, False],
        [True, False, False, False, False],
        [False] * 5,
    ]
    assert len(list(splits([torch.zeros(3)] * 4, 3))) == 1 + 4 + 6
    assert list(splits([], 3)) == [[]]


def test_a_layer_that_cannot_be_called_again_takes_a_backward_pass_each() -> None:
    class Once(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain, self.left = nn.Parameter(torch.randn(D)), [1]

        def forward(self, inputs: list[Tensor]) -> Tensor:
            (x,) = inputs
            self.left.pop()
            return torch.tanh(x * self.gain)

    model = Net(Through(lambda middle, x: middle.layer([x]), layer=Once())).double()
    tokens = torch.randint(V, (5, T))
    norms, logp = recorded(model, lambda: log_softmax_of(model, tokens))
    expected = slow_norms(model, logp.sum(1))
    with pytest.warns(UserWarning, match="5 for this batch.*Once has no rule.*pop from empty list"):
        torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-10, atol=0)

"""How the rows of trajectories are found: at the smallest sizes, and from the layers that show them."""

from dataclasses import replace

import pytest
import torch
from score_norms_net import B, D, Net, T, log_softmax_of, some_tokens
from score_norms_oracle import slow_norms
from torch import nn

from vcpo_bench.bench.score_norms import ScoreNorms


@pytest.mark.parametrize("trajectories", [1, 3])
def test_trajectories_of_one_token(trajectories: int) -> None:
    torch.manual_seed(0)
    model = Net(nn.Sequential(nn.LayerNorm(D), nn.Linear(D, D)))
    norms = ScoreNorms(model)
    with norms.record():
        logp = log_softmax_of(model, some_tokens()[:trajectories, :1])
    expected = slow_norms(model, logp.sum(1))
    torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-5, atol=0)


def test_only_layers_with_one_trajectory_per_row_say_how_long_rows_are() -> None:
    model = Net(nn.Linear(D, D))
    norms = ScoreNorms(model)
    with norms.record():
        logp = log_softmax_of(model, some_tokens())
    (first, *_), shown = norms._tape.uses, ((B, T + 2), (1, B * T), (B,), (T, B))
    layout = norms._layout([replace(first, shape=torch.Size(shape)) for shape in shown], logp, None)
    assert layout.lengths == {T, T + 2}
    assert layout.kind(torch.Size([1, B * T])) == "flat"
    assert layout.kind(torch.Size([1, B * B * T])) == ""

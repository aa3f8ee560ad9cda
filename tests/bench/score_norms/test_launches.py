"""What score norms launch on a GPU, and how often they wait for it: each wait takes milliseconds where it is shared."""

from unittest.mock import Mock

import pytest
import torch
from bfloat16_products import as_on_a_gpu
from launches import Launches
from score_norms_net import D, Net, V, log_softmax_of, some_tokens
from torch import nn

from vcpo_bench.bench.score_norms import ChunkedHead, ScoreNorms, chunked_rule


def launches(rows: int, length: int) -> list[tuple[int, int, int]]:
    """Operations, waits and backward passes of the first batch's norms, and of the second's, with a tied head."""
    model = Net(nn.Linear(D, D), tied=True)
    model.chunked = ChunkedHead(model.head, torch.bfloat16, 40 * rows * length)
    tokens = torch.randint(V, (rows, length))
    mask = torch.arange(length) < torch.randint(length // 2, length + 1, (rows, 1))
    norms, found = ScoreNorms(model), []
    with as_on_a_gpu(), pytest.MonkeyPatch.context() as patch:
        for _ in range(2):
            with norms.record(), Launches() as seen, torch.autocast("cpu", torch.bfloat16):
                logp = model.chunked.statistics(model.middle(model.tokens(tokens)), tokens.roll(-1, 1), mask).logp
                grad = Mock(wraps=torch.autograd.grad)
                patch.setattr(torch.autograd, "grad", grad)
                norms.squared_norms(logp, mask)
            patch.undo()
            found.append((seen.operations, seen.waits, grad.call_count))
    return found


@pytest.mark.parametrize("length", [3, 40])  # the Gram form, the explicit form
def test_a_gpu_is_not_told_trajectory_by_trajectory(length: int) -> None:
    few, many = launches(4, length), launches(32, length)
    assert few == many
    operations, waits, passes = many[1]
    assert passes == 1
    assert waits < 12
    assert operations < 300


def test_the_first_check_does_not_wait_layer_by_layer() -> None:
    waits = []
    for layers in (1, 6):
        model = Net(nn.Sequential(*(nn.Linear(D, D) for _ in range(layers))))
        norms = ScoreNorms(model)
        with Launches() as seen, norms.record():
            norms.squared_norms(log_softmax_of(model, some_tokens()))
        waits.append(seen.waits)
    assert waits[0] == waits[1]
    assert 0 < waits[0] < 12


@pytest.mark.parametrize(("long", "padded"), [(1, False), (2, True)])
def test_many_short_trajectories_are_not_padded_to_a_long_one(
    long: int, padded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked_rule, "ONE_BY_ONE", set())
    b = torch.zeros(8, 100, 2)
    b[:, 0, 1] = b[:long, :, 0] = 1
    assert chunked_rule.together(b) == padded

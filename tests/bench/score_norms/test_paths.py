"""Gradients are caught where they arrive: behind several nodes of the graph, or at one of several outputs of a node."""

from collections.abc import Callable

import pytest
import torch
from score_norms_net import B, D, Net, Positioned, T, Through, check_net, log_softmax_of, some_tokens
from score_norms_oracle import check
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.score_norms.audit import check_every_use_is_seen
from vcpo_bench.bench.score_norms.errors import NotBatchedError


def positioned(shape: tuple[int, ...], read: Callable[[Tensor], Tensor]) -> Positioned:
    return Positioned(nn.Linear(D, D), nn.Parameter(torch.randn(shape)), read)


READS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "one node": ((T, D), lambda p: p.unsqueeze(0)),
    "two nodes": ((3 * T, D), lambda p: p[T : 2 * T].unsqueeze(0)),
    "four nodes": ((D, 3, 2 * T), lambda p: p[:, 1].t()[1 : T + 1].unsqueeze(0)),
    "five nodes": ((D, 3, 2 * T), lambda p: p[:, 1, ::2].transpose(0, 1).unsqueeze(0).squeeze(0)),
    "one number for all": ((D, 1), lambda p: p.squeeze(1)),
    "one number per position": ((2 * T, 1), lambda p: p[:T].view(1, T, 1)),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("rows", [2, B, T])
@pytest.mark.filterwarnings("error")
def test_positions_behind_several_nodes(read: str, rows: int) -> None:
    model, tokens = positioned(*READS[read]).double(), some_tokens().repeat(2, 1)[:rows]
    norms = check(model, lambda: log_softmax_of(model, tokens))
    assert "places" in norms.layers()


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "twice": lambda p: p + p.flip(0),
    "beside its reshaped form": lambda p: p.unsqueeze(0) + p,
    "multiplied on the way": lambda p: 2 * p,
    "added with a factor": lambda p: torch.add(torch.zeros(T, D, dtype=p.dtype), p, alpha=2),
}


@pytest.mark.parametrize("way", WAYS)
def test_positions_used_in_another_way_take_one_backward_pass_each(way: str) -> None:
    model = positioned((T, D), WAYS[way]).double()
    with pytest.warns(UserWarning, match="backward pass per trajectory.*'places' belongs to no layer of its own"):
        check(model, lambda: log_softmax_of(model, some_tokens()))


def test_a_parameter_used_behind_its_path_and_elsewhere_is_seen() -> None:
    """The audit follows the path of a caught parameter, and nothing but the path."""
    model = positioned((3 * T, D), lambda p: p[T : 2 * T].unsqueeze(0))
    norms, tokens = ScoreNorms(model), some_tokens()
    with norms.record():
        logp = log_softmax_of(model, tokens)
        uses = list(norms._tape.uses)
        check_every_use_is_seen(model.middle, uses, logp)
        with pytest.raises(NotBatchedError, match="'places' is used by SliceBackward0 outside"):
            check_every_use_is_seen(model, uses, logp)
        head = logp + (model.middle.weight.sum() + model.head.bias.sum())
        with pytest.raises(NotBatchedError, match="'weight' is used by SumBackward0 outside the layer"):
            check_every_use_is_seen(model.middle, uses, head)


class Halves(nn.Module):
    """Both results come from one node of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(2 * D))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = (torch.cat([x, x.square()], -1) * self.gain).chunk(2, -1)
        return first, second


@pytest.mark.parametrize("used", ["both", "second"])
def test_results_from_one_node(used: str) -> None:
    def way(middle: Through, x: Tensor) -> Tensor:
        first, second = middle.halves(x)
        return middle.last(torch.tanh(first * second if used == "both" else second))

    with pytest.warns(UserWarning, match="no score-norm rule for Halves"):
        check_net(Net(Through(way, halves=Halves(), last=nn.Linear(D, D))))


def test_arguments_in_a_list_and_results_in_a_dict() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.randn(D))

        def forward(self, inputs: list[Tensor]) -> dict[str, Tensor]:
            return {"kept": inputs[0].detach(), "out": inputs[3] * self.gain}

    def way(middle: Through, x: Tensor) -> Tensor:
        return torch.tanh(middle.named([x, x, x, middle.first(x)])["out"])

    with pytest.warns(UserWarning, match="no score-norm rule for Named"):
        check_net(Net(Through(way, first=nn.Linear(D, D), named=Named())))

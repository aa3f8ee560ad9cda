"""Which gradients a backward pass asks for, and what the hooks keep."""

import pytest
import torch
from score_norms_net import B, D, Net, T, log_softmax_of, some_tokens
from score_norms_oracle import slow_norms
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.score_norms.capture import Use, backward


def recorded(model: Net, soft: bool = False) -> tuple[list[Use], Tensor]:
    """The uses of a forward pass; with a soft prompt, no layer comes first."""
    norms = ScoreNorms(model)
    with norms.record():
        if soft:
            prompt = torch.randn(B, 2, D, requires_grad=True)
            logp = model.head(model.middle(2 * prompt)).log_softmax(-1)[..., 0]
        else:
            logp = log_softmax_of(model, some_tokens())
    return list(norms._tape.uses), logp


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many gradients each backward pass asked for."""
    counts: list[int] = []
    own = torch.autograd.grad

    def grad(outputs: Tensor, inputs: list[object], *args: object, **options: object) -> object:
        counts.append(len(inputs))
        return own(outputs, inputs, *args, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(torch.autograd, "grad", grad)
    return counts


@pytest.mark.parametrize("retain", [True, False])
def test_the_first_layer_brings_the_gradients_of_all(asked: list[int], retain: bool) -> None:
    uses, logp = recorded(Net(nn.Sequential(nn.Linear(D, D), nn.Tanh(), nn.Linear(D, D))))
    assert [len(use.behind) for use in uses] == [0, 1, 1, 1]
    arrived: list[Use] = []
    weights = torch.ones_like(logp)
    assert backward(uses, logp, weights, arrived.append, retain_graph=True) is True
    assert backward(uses, logp, weights, arrived.append, retain, first_suffice=True) is True
    assert asked == [1, 1]
    assert len(arrived) == 8
    assert {id(use) for use in arrived[:4]} == {id(use) for use in uses}
    assert all(use.gradient is not None for use in uses)


def test_without_a_first_layer_all_are_asked_for(asked: list[int]) -> None:
    uses, logp = recorded(Net(nn.Linear(D, D)), soft=True)
    arrived: list[Use] = []
    assert backward(uses, logp, torch.ones_like(logp), arrived.append, retain_graph=True) is True
    assert asked == [2]
    assert len(arrived) == 2


def test_what_the_first_layer_does_not_bring_is_asked_for_afterwards(asked: list[int]) -> None:
    """A soft prompt beside tokens: the layers behind it are on no path to the embedding."""
    model = Net(nn.Linear(D, D))
    norms, soft = ScoreNorms(model), torch.randn(B, T, D, requires_grad=True)
    with norms.record():
        logp = log_softmax_of(model, some_tokens()) + model.head(model.middle(2 * soft)).log_softmax(-1)[..., 0]
    uses, weights, arrived = list(norms._tape.uses), torch.ones_like(logp), list[Use]()
    assert backward(uses, logp, weights, arrived.append, retain_graph=True) is False
    assert asked == [1, 2]
    assert len(arrived) == 5
    assert backward(uses, logp, weights, arrived.append, retain_graph=False) is True
    assert asked == [1, 2, 5]


def test_only_layers_that_are_replayed_once_wait_for_their_input() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.once, self.twice = nn.Linear(D, D), nn.Linear(D, D)

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(
                lambda y: self.twice(torch.tanh(self.twice(torch.tanh(self.once(y))))), x, use_reentrant=False
            )

    model = Net(nn.Sequential(nn.Linear(D, D), Checkpointed())).double()
    norms = ScoreNorms(model)
    for batch in range(3):
        with norms.record():
            logp = log_softmax_of(model, some_tokens())
        waiting = [use.layer.name for use in norms._tape.uses if use.inputs is None]
        assert waiting == ([] if batch == 0 else ["middle.1.once"])
        expected = slow_norms(model, log_softmax_of(model, some_tokens()).sum(1))
        torch.testing.assert_close(norms.squared_norms(logp, retain_graph=True), expected, rtol=1e-10, atol=0)


def test_hooks_leave_with_the_norms_and_see_only_what_is_recorded() -> None:
    model = Net(nn.Linear(D, D))
    norms = ScoreNorms(model)
    log_softmax_of(model, some_tokens())
    assert not norms._tape.uses
    with norms.record():
        log_softmax_of(model, some_tokens())
    log_softmax_of(model, some_tokens())
    assert len(norms._tape.uses) == 3
    norms.close()
    assert not norms._tape.uses
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("batch", ["first", "later"])
def test_inputs_and_gradients_are_released_layer_by_layer(batch: str) -> None:
    norms, uses = ScoreNorms(Net(nn.Linear(D, D))), list[Use]()
    for _ in range(1 if batch == "first" else 2):
        with norms.record():
            logp = log_softmax_of(norms._model, some_tokens())
        uses = list(norms._tape.uses)
        norms.squared_norms(logp)
    assert [(use.inputs, use.gradient) for use in uses] == [(None, None)] * 3

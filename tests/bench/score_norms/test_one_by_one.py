"""Where hooks cannot tell trajectories apart: one backward pass per trajectory, announced with its price."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from score_norms_layers import Experts, Scaled, Selecting
from score_norms_net import B, D, Mixing, Net, Positioned, log_softmax_of, some_tokens
from score_norms_oracle import check, recorded, row_gradients, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import GradientSums, InexactError, inner_products, noise_to_signal


class Noisy(nn.Module):
    """A layer whose results depend on more than its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.calls = nn.Parameter(torch.randn(D)), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tanh(self.calls * x * self.weight)


class Functional(Net):
    """A head that is not the module."""

    def forward(self, tokens: Tensor) -> Tensor:
        return F.linear(self.middle(self.tokens(tokens)), self.tokens.weight)


CASES: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "experts": (lambda: Net(Experts()), "'middle.weights' belongs to no layer of its own"),
    "selecting": (lambda: Net(Selecting(), tied=True), "must be the trajectory"),
    "scaled": (lambda: Net(Scaled()), "'middle.gain' belongs to no layer of its own"),
    "functional": (
        lambda: Functional(nn.Linear(D, D)),
        "'tokens.weight' is used by .* outside the layer .* ChunkedHead",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_exact_and_the_price_is_announced_once(case: str) -> None:
    build, reason = CASES[case]
    model = build().double()
    message = f"one backward pass per trajectory, {B} for this batch, which is exact but slower: .*{reason}"
    with pytest.warns(UserWarning, match=message) as seen:
        norms = check(model, lambda: log_softmax_of(model, some_tokens()))
    assert len(seen) == 1
    assert seen[0].filename.endswith("score_norms_oracle.py")
    expected = slow_norms(model, log_softmax_of(model, some_tokens()).sum(1))
    torch.testing.assert_close(sum(norms.layers().values()), expected)


def test_a_layer_that_changes_is_never_believed() -> None:
    model = Net(Noisy()).double()
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()))
    expected = slow_norms(model, logp.sum(1))
    with pytest.warns(UserWarning, match="do not add up"):
        torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-10, atol=0)


def test_layers_and_everything_made_of_them() -> None:
    model = Net(Experts(), tied=True).double()
    tokens = some_tokens()
    norms, logp = recorded(model, lambda: log_softmax_of(model, tokens))
    mask = torch.ones(logp.shape, dtype=torch.bool)
    mask[1], mask[2, 3:] = False, False
    rows = row_gradients(model, (logp * mask).sum(1))
    flat = torch.stack([torch.cat([gradient.flatten() for gradient in row.values()]) for row in rows])
    with pytest.warns(UserWarning, match="one backward pass per trajectory"):
        squared = norms.squared_norms(logp, mask)
    assert squared[1] == 0
    shared = torch.stack([row[model.head.weight].square().sum() + row[model.head.bias].square().sum() for row in rows])
    torch.testing.assert_close(norms.layers()["tokens+head"], shared)
    assert set(norms.layers()) == {"tokens+head", "middle.router", "middle.weights"}
    groups = torch.tensor([0, 1, 0, 1, 1])
    expected = torch.where(groups[:, None] == groups, flat @ flat.t(), 0.0)
    torch.testing.assert_close(inner_products(norms, groups), expected)
    weights = torch.rand(B, dtype=torch.float64)
    variance = (B * weights[:, None] * flat).var(0).sum() / B
    torch.testing.assert_close(noise_to_signal(norms, weights), variance / (weights @ flat).square().sum())
    sums = GradientSums(1)
    sums.add(norms, weights)
    sums.assemble([2.0])
    norms.assemble(weights)
    found = torch.cat([parameter.grad.flatten() for parameter in rows[0]])
    torch.testing.assert_close(found, -3 * (weights @ flat))
    norms.release()
    with pytest.raises(InexactError, match="nothing is kept"):
        norms.assemble(weights)


def test_the_graph_is_there_for_a_backward_pass_of_ones_own() -> None:
    model, tokens = Net(Experts()).double(), some_tokens()
    coefficients = torch.randn(tokens.shape, dtype=torch.float64)
    log_softmax_of(model, tokens).backward(coefficients)
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    norms, logp = recorded(model, lambda: log_softmax_of(model, tokens))
    with pytest.warns(UserWarning, match="one backward pass per trajectory"):
        norms.squared_norms(logp, retain_graph=True)
    assert all(parameter.grad is None for parameter in model.parameters())
    with pytest.raises(InexactError, match="nothing is kept"):
        norms.contributions()
    logp.backward(coefficients)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_packed_rows() -> None:
    model, tokens = Net(Experts()).double(), some_tokens()[:2]
    segments = torch.tensor([[0, 0, 1, 1, 1, -1], [2, 2, 2, 2, -1, -1]])
    norms, logp = recorded(model, lambda: log_softmax_of(model, tokens))
    expected = slow_norms(model, torch.stack([logp[segments == number].sum() for number in range(3)]))
    with pytest.warns(UserWarning, match="3 for this batch"):
        found = norms.squared_norms(logp, segments >= 0, segments=segments)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)


def test_trajectories_that_influence_each_other_have_no_norm() -> None:
    model = Mixing(Experts())
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()))
    with pytest.raises(InexactError, match=r"influence each other in layer 'tokens'.* separate forward passes"):
        norms.squared_norms(logp)


def test_positions_without_rows_do_not_hide_the_trajectories() -> None:
    model = Positioned(Experts(), nn.Embedding(9, D), lambda layer: layer(torch.arange(9))).double()
    with pytest.warns(UserWarning, match="one backward pass per trajectory"):
        check(model, lambda: log_softmax_of(model, some_tokens(9)))


def test_a_soft_prompt_before_all_layers() -> None:
    model = Net(Experts()).double()
    soft = torch.randn(B, 3, D, dtype=torch.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="one backward pass per trajectory"):
        check(model, lambda: model.head(model.middle(2 * soft)).log_softmax(-1)[..., 0])

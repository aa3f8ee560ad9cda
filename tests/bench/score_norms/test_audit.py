"""What is checked on the first batch: rules that are wrong are found by the sum of their gradients."""

import warnings

import pytest
import torch
from score_norms_layers import Experts
from score_norms_net import B, D, Net, Through, V, log_softmax_of, some_tokens
from score_norms_oracle import check, recorded, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import InexactError, ScoreNorms
from vcpo_bench.bench.score_norms.linear import LinearRule
from vcpo_bench.bench.score_norms.rules import LayerRule, RuledLayer, random_factors


class WrongRule(LinearRule):
    """Adds a constant share of itself to the first trajectory, and takes it from the second."""

    share = 0.0

    def per_row(self, a: Tensor, b: Tensor) -> list[Tensor]:
        factors = torch.ones(len(b), dtype=b.dtype)
        factors[:2] += torch.tensor([self.share, -self.share])
        return [gradient * factors.view(-1, *[1] * (gradient.ndim - 1)) for gradient in super().per_row(a, b)]

    def squared(self, a: Tensor, b: Tensor) -> Tensor:
        return LayerRule.squared(self, a, b)

    def weighted(self, a: Tensor, b: Tensor, weights: Tensor) -> list[Tensor]:
        return LayerRule.weighted(self, a, b, weights)


class Ruled(RuledLayer):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(D, D))
        self.rule = WrongRule(self.weight, None)

    def score_norm_rule(self) -> LayerRule:
        return self.rule

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_rule_of_ones_own_is_believed_only_if_it_is_right(dtype: torch.dtype) -> None:
    model = Net(Ruled()).to(dtype)
    tokens = torch.randint(V, (B, 6))
    rtol = 1e-4 if dtype is torch.float32 else 1e-10
    norms = check(model, lambda: log_softmax_of(model, tokens), rtol)
    norms.close()
    model.middle.rule.share = 0.02
    with pytest.warns(UserWarning, match=r"5 for this batch.*'middle' do not add up to the gradient.*RuledLayer"):
        check(model, lambda: log_softmax_of(model, tokens), rtol)


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize(("share", "right"), [(1e-3, True), (2e-2, False)])
def test_the_tolerance_is_relative_to_the_gradients(share: float, right: bool, factor: float) -> None:
    """Two of five trajectories may be off by 1e-3, which rounding could explain, but not by 2e-2."""
    model = Net(Ruled()).double()
    model.head.requires_grad_(False)
    model.tokens.requires_grad_(False)
    model.middle.rule.share = share
    norms, logp = recorded(model, lambda: factor * log_softmax_of(model, some_tokens()))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        norms.squared_norms(logp)
    assert bool(seen) is not right


def test_a_layer_that_its_model_changes_between_two_uses_is_found() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.power = nn.Parameter(torch.rand(D) + 0.5), 1

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weight**self.power + x.square()

    def way(middle: Through, x: Tensor) -> Tensor:
        for middle.scale.power in (1, 2):
            x = torch.tanh(middle.scale(x))
        return x

    model = Net(Through(way, scale=Scale())).double()
    with pytest.warns(UserWarning, match="'middle.scale' do not add up"):
        check(model, lambda: log_softmax_of(model, some_tokens()))


def test_half_precision_is_compared_as_closely_as_it_computes() -> None:
    model, tokens = Net(nn.Sequential(nn.Linear(D, D), nn.LayerNorm(D))).bfloat16(), some_tokens()
    norms, logp = recorded(model, lambda: log_softmax_of(model, tokens).float())
    expected = slow_norms(model, logp.sum(1)).float()
    torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=3e-2, atol=0)


def test_gradients_that_are_nothing_but_rounding_are_not_taken_for_wrong() -> None:
    """What precedes a norm over two numbers, always 1 and -1, has no gradient."""
    model = nn.Sequential(nn.Embedding(V, 2), nn.Linear(2, 2), nn.LayerNorm(2, eps=0.0), nn.Linear(2, V))
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()))
    squared = norms.squared_norms(logp)
    assert (norms.layers()["1"] < 1e-9 * squared).all()


def test_random_factors_have_no_pattern_and_stay_the_same() -> None:
    factors = random_factors(200, torch.zeros(1))
    torch.testing.assert_close(factors, random_factors(200, torch.zeros(1)), rtol=0, atol=0)
    assert factors.dtype is torch.float64
    assert len(factors.unique()) == 200
    assert 0.5 <= factors.min() < 0.55 < 1.45 < factors.max() <= 1.5


@pytest.mark.parametrize("nothing", ["a masked batch", "a batch that is not finite"])
def test_a_batch_that_proves_nothing_does_not_count_as_checked(nothing: str) -> None:
    model = Net(Ruled())
    model.middle.rule.share = 0.02
    tokens = some_tokens()
    norms, logp = recorded(
        model, lambda: log_softmax_of(model, tokens) * (1.0 if nothing == "a masked batch" else torch.nan)
    )
    squared = norms.squared_norms(logp, torch.full(logp.shape, nothing != "a masked batch"))
    assert (squared == 0).all() if nothing == "a masked batch" else squared.isnan().all()
    with norms.record():
        logp = log_softmax_of(model, tokens)
    with pytest.warns(UserWarning, match="do not add up"):
        norms.squared_norms(logp)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_each_combination_of_shapes_is_checked_once(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Net(nn.Linear(D, D))
    norms, passes = ScoreNorms(model), []
    grad = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *args, **options: passes.append(1) or grad(*args, **options))
    counts = []
    for tokens in (some_tokens(), some_tokens(9), some_tokens()[:2], some_tokens()[:, :3]):
        with norms.record():
            logp = factor * log_softmax_of(model, tokens)
        norms.squared_norms(logp)
        counts.append(len(passes))
        passes.clear()
    assert counts == [5, 1, 1, 1]
    segments = torch.tensor([[0, 0, 0, 1, 1, 1]] * B) + 2 * torch.arange(B)[:, None]
    for _ in range(2):
        with norms.record():
            logp = model(some_tokens()).log_softmax(-1)[..., 0]
        norms.squared_norms(logp, segments=segments)
    assert len(passes) == 5 + 1


@pytest.mark.parametrize(("sees", "seen"), [(0, 1), (1, 0), (2, 0), (0, 4), (3, 1), (1, 3), (4, 3), (2, 3)])
@pytest.mark.parametrize("middle", [nn.Linear(D, D), Experts()], ids=["hooks", "one by one"])
def test_influence_is_found_between_any_two_trajectories(middle: nn.Module, sees: int, seen: int) -> None:
    class Mixing(Net):
        def forward(self, tokens: Tensor) -> Tensor:
            x = self.tokens(tokens)
            mixed = x.clone()
            mixed[sees] += x[seen]
            return self.head(self.middle(mixed))

    model = Mixing(middle)
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()))
    with pytest.raises(InexactError, match="influence each other in layer 'tokens'"):
        norms.squared_norms(logp)

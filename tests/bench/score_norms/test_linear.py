"""Linear layers: the cheaper form, a tied weight stored the other way round, and how rows are found."""

from dataclasses import replace

import pytest
import torch
from score_norms_layers import Conv1D
from score_norms_net import B, D, Net, T, V, check_net, log_softmax_of, some_tokens
from score_norms_oracle import recorded, slow_norms
from torch import nn

from vcpo_bench.bench.score_norms import linear
from vcpo_bench.bench.score_norms.linear import gram, gram_is_cheaper
from vcpo_bench.bench.score_norms.rules import inner_products


@pytest.mark.parametrize(
    ("T", "d", "p", "cheaper"), [(3, 8, 8, True), (4, 8, 8, False), (9, 100, 10, True), (10, 90, 11, False)]
)
def test_the_cheaper_form_is_chosen_by_its_products(T: int, d: int, p: int, cheaper: bool) -> None:
    gram_products, matrix_products = T * T * (p + d), T * p * d
    assert gram_is_cheaper(T, d, p) is cheaper is (gram_products < matrix_products)


def test_gram_matrices_never_need_more_memory_where_they_are_chosen() -> None:
    shapes = [(T, d, p) for T in range(1, 9) for d in range(1, 40) for p in range(1, 40)]
    assert all(p * d > 2 * T * T for T, d, p in shapes if gram_is_cheaper(T, d, p))


@pytest.mark.parametrize("T", [1, 5, 6, 8, 9, 13, 14])
@pytest.mark.parametrize("B", [1, 2, 3])
def test_gram_matrices_of_any_length(B: int, T: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(B, T, 5, dtype=torch.float64)
    torch.testing.assert_close(gram(x), x @ x.transpose(1, 2))
    other = torch.randn(B, 5, T, dtype=torch.float64).transpose(1, 2)
    torch.testing.assert_close(gram(other), other @ other.transpose(1, 2))


@pytest.mark.parametrize(("B", "T", "cheaper"), [(1, 3, True), (6, 3, False), (2, 1, True)])
def test_inner_products_choose_by_all_positions(B: int, T: int, cheaper: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(linear, "inner_products", lambda gradients: calls.append(1) or inner_products(gradients))
    layer = nn.Linear(8, 8).double()
    rule = linear.LinearRule(layer.weight, layer.bias)
    a, b = torch.randn(2, B, T, 8, dtype=torch.float64)
    torch.testing.assert_close(rule.inner(a, b), inner_products(rule.per_row(a, b)))
    assert calls == ([] if cheaper else [1])


def test_an_embedding_that_also_mixes_tokens() -> None:
    """A mixture of token embeddings: the weight is that of the embedding, multiplied from the other side."""
    torch.manual_seed(0)
    model = Net(nn.Sequential(nn.Linear(D, V), nn.Softmax(-1)))
    model.middle.append(Conv1D(model.tokens.weight))
    norms = check_net(model)
    assert "tokens+middle.2" in norms.layers()


@pytest.mark.parametrize("trajectories", [1, 3])
def test_trajectories_of_one_token(trajectories: int) -> None:
    torch.manual_seed(0)
    model = Net(nn.Sequential(nn.LayerNorm(D), nn.Linear(D, D)))
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()[:trajectories, :1]))
    expected = slow_norms(model, logp.sum(1))
    torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-5, atol=0)


def test_only_layers_with_one_trajectory_per_row_say_how_long_rows_are() -> None:
    model = Net(nn.Linear(D, D))
    norms, logp = recorded(model, lambda: log_softmax_of(model, some_tokens()))
    (first, *_), shown = norms._tape.uses, ((B, T + 2), (1, B * T), (B,), (T, B))
    layout = norms._layout([replace(first, shape=torch.Size(shape)) for shape in shown], logp, None)
    assert layout.lengths == {T, T + 2}
    assert layout.kind(torch.Size([1, B * T])) == "flat"
    assert layout.kind(torch.Size([1, B * B * T])) == ""

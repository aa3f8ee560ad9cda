"""A head that never holds all logits: values, gradients and score norms of the plain way. Needs torch only."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from allocations import Allocations
from score_norms_oracle import check, recorded, row_gradients, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import ChunkedHead, ScoreNorms, chunked_rule
from vcpo_bench.bench.score_norms.vocabulary import ChunkedVocabulary

B, V, D = 5, 50, 8


class Net(nn.Module):
    """Embedding, something in the middle, head; the last scores tokens either way."""

    def __init__(self, tied: bool = False, bias: bool = False, chunk: int = 8 * 7 * 30, vocab: int = V) -> None:
        super().__init__()
        self.tokens, self.middle = nn.Embedding(vocab, D), nn.Sequential(nn.Linear(D, D), nn.Tanh())
        self.head = nn.Linear(D, vocab, bias=bias)
        if tied:
            self.head.weight = self.tokens.weight
        self.chunked = ChunkedHead(self.head, torch.float64, chunk)

    def body(self, tokens: Tensor) -> Tensor:
        return self.middle(self.tokens(tokens))

    def forward(self, tokens: Tensor, mask: Tensor) -> Any:
        return self.chunked.statistics(self.body(tokens), tokens.roll(-1, 1), mask)


def plain(model: Net, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    log_p = model.head(model.body(tokens)).log_softmax(-1)
    logp = log_p.gather(-1, tokens.roll(-1, 1).unsqueeze(-1)).squeeze(-1)
    found = (logp, -(log_p.exp() * log_p).sum(-1), (2 * log_p).exp().sum(-1))
    return tuple(torch.where(mask, each, 0.0) for each in found)  # type: ignore[return-value]


def batch(length: int, rows: int = B, vocab: int = V) -> tuple[Tensor, Tensor]:
    """Tokens with repeats, and a mask of ragged rows with a gap; one row is empty."""
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(vocab, (rows, length), generator=generator)
    mask = torch.arange(length) < torch.randint(1, length + 1, (rows, 1), generator=generator)
    tokens[0], mask[1] = 4, False
    mask[0], mask[0, 1] = True, False
    return tokens, mask


@pytest.fixture(params=["alone", "together"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trajectories are computed one after the other, as on a CPU, and padded together, as elsewhere."""
    monkeypatch.setattr(chunked_rule, "ONE_BY_ONE", {"cpu"} if request.param == "alone" else set())


def close(found: Any, wanted: Any, rtol: float = 1e-10) -> None:
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=rtol * float(b.detach().abs().max()) if b.numel() else 0)


@pytest.mark.parametrize("chunk", [1, 8 * 7 * 30, 10**9])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_statistics_and_their_gradients_are_those_of_the_plain_way(tied: bool, bias: bool, chunk: int) -> None:
    model, (tokens, mask) = Net(tied, bias, chunk).double(), batch(9)
    found, wanted = model(tokens, mask), plain(model, tokens, mask)
    close(found, wanted)
    assert not found.sum_pi_sq.requires_grad
    weights = torch.linspace(-1, 1, mask.numel(), dtype=torch.float64).view(mask.shape)
    for by_logp, by_entropy in ((1.0, 0.0), (0.0, 1.0), (0.7, -0.3)):
        ours, theirs = (
            torch.autograd.grad(
                (weights * (by_logp * scores[0] + by_entropy * scores[1])).sum(),
                list(model.parameters()),
                retain_graph=True,
            )
            for scores in (found, wanted)
        )
        close(ours, theirs)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("chunk", [1, 8 * 7 * 30, 10**9])
@pytest.mark.parametrize("length", [3, 40])  # the Gram form, the explicit form
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_score_norms_are_those_of_one_backward_per_trajectory(tied: bool, bias: bool, length: int, chunk: int) -> None:
    model, (tokens, mask) = Net(tied, bias, chunk).double(), batch(length)
    norms = check(model, lambda: model(tokens, mask).logp)
    with norms.record():
        logp = model(tokens, mask).logp
    found = norms.squared_norms(logp, mask)
    torch.testing.assert_close(found, slow_norms(model, plain(model, tokens, mask)[0].sum(1)), rtol=1e-10, atol=0)
    assert set(norms.layers()) == {"middle.0", *(["tokens+head+chunked"] if tied else ["tokens", "head+chunked"])}
    coefficients = torch.linspace(-1, 2, B, dtype=torch.float64)
    norms.assemble(coefficients)
    assembled = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    plain(model, tokens, mask)[0].backward(-coefficients.unsqueeze(1).expand(mask.shape))
    close(assembled, [parameter.grad for parameter in model.parameters()])


@pytest.mark.usefixtures("way")
def test_a_norm_of_the_entropy_is_exact_too() -> None:
    model, (tokens, mask) = Net(tied=True, bias=True).double(), batch(9)

    def compute() -> Tensor:
        scores = model(tokens, mask)
        return scores.logp + 0.3 * scores.entropy

    check(model, compute)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("trained", ["nothing", "bias", "weight"])
def test_partly_frozen_heads(trained: str) -> None:
    model, (tokens, mask) = Net(bias=True).double(), batch(9)
    for name, parameter in model.head.named_parameters():
        parameter.requires_grad_(name == trained)
    norms = check(model, lambda: model(tokens, mask).logp)
    assert any("chunked" in name for name in norms.layers()) == (trained != "nothing")


def test_only_the_head_is_trained() -> None:
    model, (tokens, mask) = Net().double(), batch(9)
    model.tokens.requires_grad_(False)
    model.middle.requires_grad_(False)
    check(model, lambda: model(tokens, mask).logp)


def test_norms_cost_no_gradient_of_the_head_and_leave_the_graph_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (tokens, mask) = Net(tied=True).double(), batch(9)
    weights = torch.linspace(-1, 1, mask.numel(), dtype=torch.float64).view(mask.shape)
    calls: list[str] = []
    own = ChunkedVocabulary.head_gradient
    monkeypatch.setattr(ChunkedVocabulary, "head_gradient", lambda *args: calls.append("head_gradient") or own(*args))
    norms = ScoreNorms(model)
    for _ in range(2):  # the first batch is checked, which takes the whole gradient
        calls.clear()
        with norms.record():
            scores = model(tokens, mask)
        norms.squared_norms(scores.logp, mask, retain_graph=True)
    assert not calls
    torch.autograd.backward([scores.logp, scores.entropy], [weights, 0.1 * weights])
    assert calls == ["head_gradient"]
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    torch.autograd.backward(plain(model, tokens, mask)[:2], [weights, 0.1 * weights])
    close(found, [parameter.grad for parameter in model.parameters()])


@pytest.mark.parametrize("tied", [False, True])
def test_a_head_used_twice_or_both_ways(tied: bool) -> None:
    model, (tokens, mask) = Net(tied).double(), batch(6)
    first = torch.arange(6) < 3
    check(model, lambda: model(tokens, mask & first).logp + model(tokens, mask & ~first).logp)
    check(model, lambda: model(tokens, mask & first).logp + plain(model, tokens, mask & ~first)[0])


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("tied", [False, True])
def test_packed_and_flattened_rows(tied: bool) -> None:
    segments = torch.tensor([[0, 0, 0, 2, 2, 2, -1], [1, 1, 1, 1, 1, -1, -1]])
    model, tokens = Net(tied).double(), torch.randint(V, segments.shape)
    norms, logp = recorded(model, lambda: model(tokens, segments >= 0).logp)
    wanted = slow_norms(model, torch.stack([logp[segments == number].sum() for number in range(3)]))
    found = norms.squared_norms(logp, segments >= 0, segments=segments)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=0)

    def flat() -> Tensor:
        hidden, targets = model.body(tokens).flatten(0, 1)[None], tokens.flatten()[None]
        return model.chunked.statistics(hidden, targets, torch.ones_like(targets, dtype=torch.bool)).logp.view(2, 7)

    check(model, flat)


@pytest.mark.usefixtures("way")
def test_no_places_at_all() -> None:
    model, (tokens, mask) = Net(tied=True).double(), batch(4)
    norms = ScoreNorms(model)
    for rows in (B, 0):
        with norms.record():
            logp = model(tokens[:rows], mask[:rows] & False).logp
        assert torch.equal(norms.squared_norms(logp), torch.zeros(rows, dtype=torch.float64))


def test_confident_places_are_as_exact_in_float32_as_the_plain_way() -> None:
    """Where 1 - p is 1e-5 to 1e-2, and p and the normalizer are rounded by nearly as much."""
    model, tokens = Net(), torch.randint(V, (B, 12))
    with torch.no_grad():
        model.head.weight.mul_(100)
    targets = model.head(model.body(tokens)).argmax(-1)

    def chosen(model: Net) -> Tensor:
        return model.head(model.body(tokens)).log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)

    exact = copy.deepcopy(model).double()
    mask = (chosen(exact) > -1e-2) & (chosen(exact) < -1e-5)
    wanted, dense = (slow_norms(each, torch.where(mask, chosen(each), 0.0).sum(1)) for each in (exact, model))
    model.chunked = ChunkedHead(model.head, chunk_bytes=4 * 7 * 30)
    norms, logp = recorded(model, lambda: model.chunked.statistics(model.body(tokens), targets, mask).logp)
    error = (norms.squared_norms(logp, mask) - wanted).abs()
    assert (error <= 3 * (dense - wanted).abs() + 1e-4 * wanted).all()


def test_bfloat16_products_are_close_and_sums_are_float32() -> None:
    model, (tokens, mask) = Net(tied=True), batch(9)
    wanted = slow_norms(model, plain(model, tokens, mask)[0].sum(1))
    model.chunked = ChunkedHead(model.head, torch.bfloat16)
    norms = ScoreNorms(model)
    with torch.autocast("cpu", torch.bfloat16), norms.record():
        logp = model(tokens, mask).logp
    found = norms.squared_norms(logp, mask)
    assert logp.dtype is found.dtype is torch.float32
    torch.testing.assert_close(found, wanted, rtol=5e-2, atol=0)
    assert all(gradient.dtype is torch.float32 for gradient in norms.gradient(torch.ones(B)).values())


def test_an_autocast_region_around_it_changes_nothing() -> None:
    hidden, targets = torch.randn(2, 5, 8), torch.randint(0, 30, (2, 5))
    head = ChunkedHead(nn.Linear(8, 30))
    found = head.statistics(hidden, targets, torch.ones(2, 5, dtype=torch.bool))
    with torch.autocast("cpu", torch.bfloat16):
        inside = head.statistics(hidden, targets, torch.ones(2, 5, dtype=torch.bool))
    for ours, theirs in zip(inside, found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_weight_that_changes_before_the_backward_is_noticed() -> None:
    model, (tokens, mask) = Net(), batch(9)
    logp = model.double()(tokens, mask).logp
    with torch.no_grad():
        model.head.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        logp.sum().backward()


def peak(score: Callable[[Net, Tensor, Tensor], Tensor], tokens: int, vocabulary: int) -> int:
    """Bytes that norms and the gradient assembled from them allocate at most."""
    model = Net(tied=True, chunk=2**18, vocab=vocabulary)
    model.chunked.vocabulary.dtype = model.chunked.vocabulary.exact = torch.float32
    rows, mask = batch(tokens // 4, 4, vocabulary)
    norms = ScoreNorms(model)
    with Allocations() as allocations:
        with norms.record():
            logp = score(model, rows, mask)
        norms.squared_norms(logp, mask)
        norms.assemble(torch.ones(4))
    return allocations.peak


def test_memory_does_not_grow_with_tokens_times_vocabulary() -> None:
    tokens, vocabulary = 1024, 4000
    logits = 4 * tokens * vocabulary

    def chunked(*arguments: Any) -> Tensor:
        return arguments[0](*arguments[1:]).logp

    def dense(*arguments: Any) -> Tensor:
        return plain(*arguments)[0]

    assert peak(dense, tokens, vocabulary) > 2 * logits  # the measurement sees what must not happen
    assert peak(chunked, tokens, vocabulary) < logits / 4
    assert peak(chunked, 4 * tokens, vocabulary) - peak(chunked, tokens, vocabulary) < logits / 4


def test_a_copy_of_the_model_has_a_head_of_its_own() -> None:
    model, (tokens, mask) = Net(tied=True).double(), batch(9)
    other = copy.deepcopy(model)
    assert other.chunked.vocabulary.head is other.head
    assert set(model.state_dict()) == {"tokens.weight", "middle.0.weight", "middle.0.bias", "head.weight"}
    with torch.no_grad():
        other.head.weight.mul_(2)
    close([model(tokens, mask).logp], [plain(model, tokens, mask)[0]])
    assert len(row_gradients(other, other(tokens, mask).logp.sum(1))) == B

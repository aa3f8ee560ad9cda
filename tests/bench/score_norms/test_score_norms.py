import pytest
import torch
from score_norms_oracle import Tiny, recorded, score, slow_norms
from torch import Tensor, nn

from vcpo_bench.bench.score_norms import InexactError, ScoreNorms

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def batch(B: int = 6, L: int = 12, T: int = 7, vocab: int = 11) -> tuple[Tensor, Tensor]:
    """Tokens with repeats, and a mask with an empty and a partly masked row."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(vocab, (B, L), generator=generator)
    tokens[1] = 3
    mask = torch.rand(B, T, generator=generator) < 0.7
    mask[2] = False
    return tokens, mask


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
def test_equal_to_one_backward_per_trajectory(dtype: torch.dtype, bias: bool) -> None:
    model = Tiny(bias=bias).to(dtype)
    tokens, mask = batch()
    norms, logp = recorded(model, lambda: score(model, tokens, 7))
    expected = slow_norms(model, (logp * mask).sum(1))
    actual = norms.squared_norms(logp, mask)
    assert actual.dtype is dtype
    assert actual[2] == 0
    torch.testing.assert_close(actual, expected, rtol=TOLERANCE[dtype], atol=0)
    torch.testing.assert_close(sum(norms.layers().values()), actual)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_assembled_gradient_is_that_of_a_backward_with_coefficients() -> None:
    model = Tiny()
    tokens, mask = batch()
    norms = ScoreNorms(model)
    coefficients = torch.randn(6)
    score(model, tokens, 7).backward(-coefficients[:, None] * mask)
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    for part in (slice(0, 4), slice(4, 6)):  # micro-batches accumulate
        with norms.record():
            logp = score(model, tokens[part], 7)
        norms.squared_norms(logp, mask[part])
        norms.assemble(coefficients[part])
        norms.release()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-5, atol=1e-6 * float(gradient.abs().max()))


def test_a_retained_graph_serves_token_level_coefficients() -> None:
    model = Tiny()
    tokens, mask = batch()
    coefficients = torch.randn(6, 7) * mask
    norms, logp = recorded(model, lambda: score(model, tokens, 7))
    retained = norms.squared_norms(logp, mask, retain_graph=True)
    with pytest.raises(InexactError, match="nothing is kept"):
        norms.assemble(coefficients[:, 0])
    logp.backward(-coefficients)
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    again = score(model, tokens, 7)
    again.backward(-coefficients)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    torch.testing.assert_close(retained, slow_norms(model, (score(model, tokens, 7) * mask).sum(1)))


def test_flattened_rows_and_repeated_layers() -> None:
    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layer, self.out = nn.Embedding(5, 6), nn.Linear(6, 6), nn.Linear(6, 5)

        def forward(self, tokens: Tensor) -> Tensor:
            x = self.embedding(tokens).flatten(0, 1)
            for _ in range(3):
                x = torch.tanh(self.layer(x))
            return self.out(x).unflatten(0, tokens.shape)

    model, tokens = Flat().double(), torch.randint(5, (4, 3))
    norms, logp = recorded(model, lambda: model(tokens).log_softmax(-1)[..., 0])
    expected = slow_norms(model, logp.sum(1))
    torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-10, atol=0)


def test_flattened_rows_longer_than_the_responses() -> None:
    """How many positions a flattened row has is known from layers that see rows, when the head sees fewer."""

    class Flat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layer, self.out = nn.Embedding(5, 6), nn.Linear(6, 6), nn.Linear(6, 5)

        def forward(self, tokens: Tensor) -> Tensor:
            x = torch.tanh(self.layer(self.embedding(tokens).flatten(0, 1))).unflatten(0, tokens.shape)
            return self.out(x[:, -2:])

    model, tokens = Flat().double(), torch.randint(5, (4, 7))
    norms, logp = recorded(model, lambda: model(tokens).log_softmax(-1)[..., 0])
    expected = slow_norms(model, logp.sum(1))
    torch.testing.assert_close(norms.squared_norms(logp), expected, rtol=1e-10, atol=0)


def test_wrong_use_is_refused_with_the_reason() -> None:
    model = Tiny()
    norms = ScoreNorms(model)
    tokens, _ = batch()
    with pytest.raises(InexactError, match="nothing was recorded"):
        norms.squared_norms(score(model, tokens, 7))
    with torch.no_grad(), norms.record(), pytest.raises(InexactError, match="without gradients"):
        score(model, tokens, 7)
    norms.close()
    with norms.record():
        logp = score(model, tokens, 7)
    with pytest.raises(InexactError, match="nothing was recorded"):
        norms.squared_norms(logp)

"""SIS against its literal loss: the mean of PPO's loss over every outcome of the rejection tests."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from vocabulary_batches import Make, drawn

from vcpo_bench.methods import Batch, parse_method

V = 7


def with_advantages(make_batch: Make, shape: tuple[int, ...], seed: int, apart: float) -> Batch:
    """Drawn tokens with few advantages, without the baseline."""
    batch, _, _ = drawn(make_batch, shape, seed, apart, V)
    generator = torch.Generator().manual_seed(seed)
    advantage = torch.randint(-2, 3, shape[:2], generator=generator).double() * 0.7
    return replace(batch, advantage=advantage.unsqueeze(-1).expand(shape).contiguous())


def gradient(batch: Batch, top: int) -> Tensor:
    """In the log-probabilities, a token at a time."""
    logp = batch.logp.clone().requires_grad_()
    assert batch.vocabulary_logp is not None
    assert batch.behavior_vocabulary_logp is not None
    assert batch.advantage is not None
    total = torch.zeros((), dtype=torch.float64)
    for place in batch.mask.nonzero().tolist():
        at = tuple(place)
        p, q = batch.vocabulary_logp[at].exp(), batch.behavior_vocabulary_logp[at].exp()
        head = q.argsort(descending=True)[:top]
        r, A = (logp[at] - batch.behavior_logp[at]).clamp(-20, 20).exp(), batch.advantage[at]
        likely = bool((q[head] == batch.behavior_logp[at].exp()).any())
        accepted = float(r.detach() / (p[head] / q[head]).max()) if likely else 0.0
        as_if_on_policy = -A * (logp[at] - logp[at].detach()).exp()
        clipped = -torch.minimum(r * A, r.clamp(0.8, 1.2) * A)
        total = total + accepted * as_if_on_policy + (1 - accepted) * clipped
    (found,) = torch.autograd.grad(total, logp)
    return found


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 1), (4, 1, 5)])
@pytest.mark.parametrize("apart", [0.0, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("top", [0, 1, 3, 10])
def test_it_is_the_gradient_of_the_mean_loss(make_batch: Make, shape: tuple[int, ...], apart: float, top: int) -> None:
    for seed in range(3):
        batch = with_advantages(make_batch, shape, seed, apart)
        expected = gradient(batch, top or V)
        found = parse_method(f"sis(top={top})+token-sum")(batch).coefficients
        assert float((found + expected).abs().max()) <= 1e-12 * max(1.0, float(expected.abs().max()))


def test_on_policy_every_token_is_accepted(make_batch: Make) -> None:
    batch = with_advantages(make_batch, (3, 4, 5), 0, 0.0)
    plain = parse_method("reinforce+token-sum")(batch).coefficients
    assert torch.allclose(parse_method("sis(top=0)+token-sum")(batch).coefficients, plain, rtol=1e-12, atol=0)


def test_a_token_that_the_sampler_cannot_draw_does_not_widen_the_envelope(make_batch: Make) -> None:
    p = torch.tensor([[[[0.5, 0.3, 0.2]]]], dtype=torch.float64).log()
    q = torch.tensor([[[[0.6, 0.4, 0.0]]]], dtype=torch.float64).log()
    batch = make_batch(
        (1, 1, 1), logp=p[..., 0], behavior_logp=q[..., 0], vocabulary_logp=p, behavior_vocabulary_logp=q
    )
    batch.mask[:], batch.valid[:] = True, True
    batch = replace(batch, advantage=torch.ones(1, 1, 1, dtype=torch.float64))
    r = 0.5 / 0.6
    accepted = r / max(r, 0.3 / 0.4)
    found = float(parse_method("sis+token-sum")(batch).coefficients)
    assert found == pytest.approx(accepted + (1 - accepted) * r)

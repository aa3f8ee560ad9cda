"""Score centering against its literal loss on logits in float64, and what it is for: no drift."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from vocabulary_batches import Make, drawn

from vcpo_bench.methods import Batch, MissingEvidence, parse_method

V = 6


def gradient(batch: Batch, logits: Tensor, token: Tensor, text: str) -> Tensor:
    """Of the loss that an update stands for, in the logits."""
    update = parse_method(text)(batch)
    assert update.vocabulary_coefficients is not None
    logp = logits.log_softmax(-1)
    own = (update.coefficients * logp.gather(-1, token).squeeze(-1)).sum()
    (found,) = torch.autograd.grad(-own - (update.vocabulary_coefficients * logp).sum(), logits)
    return found


def literal(batch: Batch, logits: Tensor, token: Tensor, mode: str, top: int) -> Tensor:
    """NeMo-RL's guide and the paper's appendix A, a token at a time, with TIS 0..2 or IcePop 0.5..2 on the token."""
    low, cap = (0.5 if mode == "icepop" else 0.0), 2.0
    plain = parse_method("reinforce")(batch).coefficients  # N A
    total = torch.zeros((), dtype=torch.float64)
    for place in batch.mask.nonzero().tolist():
        at = tuple(place)
        logp = logits[at].log_softmax(-1)
        p, q = logp.detach().exp(), batch.behavior_vocabulary_logp[at].exp()  # type: ignore[index]
        head = q.argsort(descending=True)[: top or V]
        tail_p, tail_q = 1 - p[head].sum(), 1 - q[head].sum()
        rho = tail_q.clamp(min=0) / tail_p.clamp(min=1e-6)
        ratio = float(p[token[at]] / q[token[at]])
        if mode == "none":
            weight, m, alpha = 1.0, q, rho
        elif mode == "tis":
            weight, m = min(ratio, cap), torch.minimum(torch.maximum(p, low * q), cap * q)
            alpha = torch.minimum(torch.maximum(torch.ones_like(rho), low * rho), cap * rho)
        else:
            weight = ratio if low <= ratio <= cap else 0.0
            m = torch.where((p / q >= low) & (p / q <= cap), p, 0.0)
            alpha = ((low * rho <= 1) & (cap * rho >= 1)).double()
        alpha = alpha if top else torch.zeros(())
        centered = ((m - alpha * p)[head] * logp[head]).sum()
        total = total - plain[at] * (weight * logp[token[at]].squeeze() - centered)
    (found,) = torch.autograd.grad(total, logits)
    return found


BASES = {"none": "reinforce", "tis": "token-tis(cap=2)", "icepop": "icepop(low=0.5,cap=2)"}


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 1), (4, 1, 5)])
@pytest.mark.parametrize("apart", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("mode", BASES)
@pytest.mark.parametrize("top", [0, 2])
def test_it_is_the_gradient_of_the_loss(
    make_batch: Make, shape: tuple[int, ...], apart: float, mode: str, top: int
) -> None:
    low = 0.5 if mode == "icepop" else 0
    text = f"{BASES[mode]}+score-centering(mode={mode},low={low},top={top})"
    for seed in range(3):
        batch, logits, token = drawn(make_batch, shape, seed, apart, V)
        theirs = literal(batch, logits, token, mode, top)
        assert float((gradient(batch, logits, token, text) - theirs).abs().max()) <= 1e-12


@pytest.mark.parametrize("mode", BASES)
def test_a_common_advantage_moves_nothing_on_average(make_batch: Make, mode: str) -> None:
    """The mean of the update under the sampler, with every token drawn in turn at the same place and advantage."""
    batch, logits, _ = drawn(make_batch, (1, 1, 1), 0, 1.0, V)
    batch = replace(batch, advantage=torch.ones(1, 1, 1, dtype=torch.float64))
    batch.mask[:] = True
    assert batch.vocabulary_logp is not None
    assert batch.behavior_vocabulary_logp is not None
    plain, centered = torch.zeros_like(logits), torch.zeros_like(logits)
    for v in range(V):
        own = {"logp": batch.vocabulary_logp[..., v], "behavior_logp": batch.behavior_vocabulary_logp[..., v]}
        token = torch.full((1, 1, 1, 1), v)
        chance = batch.behavior_vocabulary_logp[0, 0, 0, v].exp()
        low = 0.5 if mode == "icepop" else 0
        text = f"{BASES[mode]}+score-centering(mode={mode},low={low})"
        found = gradient(replace(batch, **own), logits, token, text)
        centered = centered + chance * found
        alone = parse_method(BASES[mode])(replace(batch, **own)).coefficients
        score = torch.autograd.grad(logits.log_softmax(-1).gather(-1, token).sum(), logits)[0]
        plain = plain + chance * alone.unsqueeze(-1) * score
    assert float(centered.abs().max()) < 1e-15
    assert float(plain.abs().max()) > 1e-3  # without it there is a drift


def test_on_policy_data_need_no_centering_on_average(make_batch: Make) -> None:
    batch, logits, token = drawn(make_batch, (3, 4, 5), 1, 0.0, V)
    centered = gradient(batch, logits, token, "reinforce+score-centering")
    update = parse_method("reinforce")(batch).coefficients
    own = (update * logits.log_softmax(-1).gather(-1, token).squeeze(-1)).sum()
    (plain,) = torch.autograd.grad(-own, logits)
    assert torch.allclose(centered, plain, atol=1e-15)


def test_without_distributions_it_says_what_is_missing(make_rows: Make) -> None:
    with pytest.raises(MissingEvidence, match="behavior_vocabulary_logp is the same under the policy that sampled"):
        parse_method("clip+score-centering")(make_rows([[0.1]], [1.0]))

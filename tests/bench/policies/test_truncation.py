"""Top-p and top-k: which tokens survive, how that is recorded, and what it does to ratios."""

import pytest
import torch

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.scores import TokenScores
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.truncation import Truncation, pack, unpack
from vcpo_bench.bench.score_norms import ScoreNorms
from vcpo_bench.bench.trajectories import Responses, Rollout

LOGITS = torch.tensor([[0.5, 0.3, 0.15, 0.05], [0.05, 0.15, 0.3, 0.5]]).log()
VOCABULARY, ROWS, T, EOS = 21, 64, 6, 3
PROMPTS = torch.arange(24).view(8, 3) % VOCABULARY
DRAWS = torch.rand(ROWS, T, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
CUTS = [Truncation(top_p=0.8, replay=True), Truncation(top_k=5, replay=True), Truncation(0.7, 8, True)]


def policy(scale: float = 8.0) -> TinyPolicy:
    made = TinyPolicy(PolicyConfig(VOCABULARY, 3 + T), seed=1)
    with torch.no_grad():
        made.head.weight.mul_(scale)  # fresh weights are nearly uniform
    return made


def scored(subject: TinyPolicy, rollout: Rollout, kept: torch.Tensor | None) -> TokenScores:
    with torch.no_grad():
        return subject.score(Responses(PROMPTS, rollout.responses, rollout.mask, kept))


def test_the_most_likely_tokens_survive() -> None:
    probabilities = Truncation(top_k=2).apply(LOGITS, 1).softmax(1)
    torch.testing.assert_close(probabilities[0], torch.tensor([0.625, 0.375, 0.0, 0.0]))
    probabilities = Truncation(top_p=0.75).apply(LOGITS, 1).softmax(1)
    torch.testing.assert_close(probabilities[1], torch.tensor([0.0, 0.0, 0.375, 0.625]))
    both = Truncation(top_p=0.75, top_k=3)  # top-p of what top-k left: 0.5 and 0.3 of 0.95
    assert both.survivors(LOGITS, 1).tolist() == [[True, True, False, False], [False, False, True, True]]
    assert torch.equal(both.survivors(LOGITS.t(), 0), both.survivors(LOGITS, 1).t())
    assert Truncation().apply(LOGITS, 1) is LOGITS


@pytest.mark.parametrize("vocabulary", [1, 8, 13, 300])
def test_sets_come_back_from_their_bits(vocabulary: int) -> None:
    kept = torch.rand(4, 5, vocabulary, generator=torch.Generator().manual_seed(0)) < 0.4
    packed = pack(kept)
    assert packed.dtype == torch.uint8
    assert packed.shape == (4, 5, -(-vocabulary // 8))
    assert torch.equal(unpack(packed, vocabulary), kept)


@pytest.mark.parametrize("cut", CUTS)
def test_reported_log_probabilities_are_those_of_what_was_drawn_from(cut: Truncation) -> None:
    subject = policy()
    rollout = subject.sample(Draw(PROMPTS, DRAWS, EOS, truncation=cut))
    assert rollout.kept is not None
    kept = unpack(rollout.kept, VOCABULARY)
    assert not kept[~rollout.mask].any()
    assert kept.gather(2, rollout.responses.unsqueeze(2)).squeeze(2)[rollout.mask].all()
    whole = scored(subject, rollout, None)
    distribution = whole.distribution.permute(1, 2, 0).exp()  # type: ignore[attr-defined]
    mass = (distribution * kept).sum(2)
    assert (mass[rollout.mask] >= (cut.top_p if not cut.top_k else 0.3) - 1e-6).all()
    torch.testing.assert_close(rollout.logp[rollout.mask], (whole.logp - mass.log())[rollout.mask], rtol=0, atol=2e-6)


def test_at_top_p_80_the_ratio_is_clearly_below_one_and_replay_repairs_it() -> None:
    """Published at top-p 0.8 for a language model: mean ratio 0.896, 52% outside [0.9, 1.1]; after replay 1.001 and 4%.

    A nucleus of mass m gives a ratio of m, between 0.8 and 1, whatever the policy. Sampler and learner hold the
    same weights here, so that what replay leaves is rounding alone.
    """
    subject, cut = policy(), Truncation(top_p=0.8, replay=True)
    rollout = subject.sample(Draw(PROMPTS, DRAWS, EOS, truncation=cut))
    plain = (scored(subject, rollout, None).logp - rollout.logp)[rollout.mask].exp()
    assert plain.min() >= 0.8 - 1e-6
    assert 0.8 < plain.mean() < 0.93
    assert ((plain < 0.9) | (plain > 1.1)).double().mean() > 0.4
    replayed = (scored(subject, rollout, rollout.kept).logp - rollout.logp)[rollout.mask].exp()
    torch.testing.assert_close(replayed, torch.ones_like(replayed), rtol=0, atol=5e-6)


@pytest.mark.parametrize("cut", CUTS)
def test_replayed_statistics_are_finite_and_of_the_cut_distribution(cut: Truncation) -> None:
    subject = policy()
    rollout = subject.sample(Draw(PROMPTS, DRAWS, EOS, truncation=cut))
    scores = subject.score(Responses(PROMPTS, rollout.responses, rollout.mask, rollout.kept))
    torch.testing.assert_close(scores.entropy, rollout.entropy, rtol=0, atol=1e-5)
    assert (scores.sum_pi_sq[rollout.mask] <= 1 + 1e-6).all()
    (scores.logp.sum() + scores.differentiable_entropy().sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in subject.parameters())


def test_score_norms_are_those_of_the_cut_distribution() -> None:
    subject, cut = policy(), Truncation(top_p=0.8, replay=True)
    rollout = subject.sample(Draw(PROMPTS, DRAWS, EOS, truncation=cut))
    each, norms = PROMPTS.repeat_interleave(ROWS // 8, 0), ScoreNorms(subject)
    with norms.record():
        scores = subject.score_rows(Responses(each, rollout.responses, rollout.mask, rollout.kept))
    squared = norms.squared_norms(scores.logp, scores.mask)
    assert rollout.kept is not None
    for row in (0, 17):
        subject.zero_grad()
        one = slice(row, row + 1)
        subject.score(
            Responses(each[one], rollout.responses[one], rollout.mask[one], rollout.kept[one])
        ).logp.sum().backward()
        by_hand = sum(float(p.grad.square().sum()) for p in subject.parameters() if p.grad is not None)
        assert float(squared[row]) == pytest.approx(by_hand, rel=1e-4)

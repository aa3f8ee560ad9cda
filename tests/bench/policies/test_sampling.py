import numpy as np
import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.tiny.decoding import Decoder
from vcpo_bench.bench.policies.tiny.network import PolicyConfig
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.policies.tiny.sampling import extend
from vcpo_bench.bench.policies.tiny.scoring import score
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.bench.trajectories import Responses, Rollout

EOS = 9


@pytest.fixture(scope="module")
def policy() -> TinyPolicy:
    policy = TinyPolicy(PolicyConfig(vocab_size=10, context=24), seed=4)
    with torch.no_grad():
        policy.head.weight.mul_(20)
    return policy


def draws(rows: int, length: int = 12, batch: int = 0) -> Tensor:
    return torch.from_numpy(uniforms(0, "test sampling", batch, rows, length))


PROMPTS = torch.from_numpy((uniforms(0, "test prompts", 0, 4, 12) * 10).astype(np.int64))


@pytest.mark.parametrize("eos", [None, EOS])
def test_recorded_log_probabilities_are_the_scored_ones(policy: TinyPolicy, eos: int | None) -> None:
    rollout = policy.sample(Draw(PROMPTS, draws(32), eos))
    scores = score(policy, Responses(PROMPTS, rollout.responses, rollout.mask))
    assert (scores.logp - rollout.logp).abs().max() < 1e-5
    assert (scores.entropy - rollout.entropy).abs().max() < 1e-5


def test_tokens_invert_the_cumulative_distribution(policy: TinyPolicy) -> None:
    u = draws(32)
    rollout = policy.sample(Draw(PROMPTS, u))
    p = score(policy, Responses(PROMPTS, rollout.responses, rollout.mask)).distribution.double().exp()
    upper = p.cumsum(0).gather(0, rollout.responses.unsqueeze(0)).squeeze(0)
    lower = upper - p.gather(0, rollout.responses.unsqueeze(0)).squeeze(0)
    assert (lower - 1e-5 <= u).all()
    assert (u <= upper + 1e-5).all()


def test_frequencies_follow_the_policy(policy: TinyPolicy) -> None:
    rows = 4000
    rollout = policy.sample(Draw(PROMPTS[:1], draws(rows, length=1)))
    p = policy(PROMPTS[:1])[0, -1].detach().softmax(-1)
    counts = rollout.responses[:, 0].bincount(minlength=10)
    chi_squared = float(((counts - rows * p) ** 2 / (rows * p)).sum())
    assert chi_squared < 28  # 9 degrees of freedom: p < 0.001


def test_the_extremes_of_the_unit_interval(policy: TinyPolicy) -> None:
    nearly_one = torch.full((4, 12), 1 - 2**-53, dtype=torch.float64)
    assert (policy.sample(Draw(PROMPTS, nearly_one)).responses == 9).all()
    assert (policy.sample(Draw(PROMPTS, torch.zeros(4, 12, dtype=torch.float64))).responses == 0).all()


def test_a_row_depends_on_its_own_prompt_and_uniforms(policy: TinyPolicy) -> None:
    together = policy.sample(Draw(PROMPTS, draws(32)))
    alone = policy.sample(Draw(PROMPTS[1:2], draws(32)[8:16]))
    assert torch.equal(together.responses[8:16], alone.responses)
    torch.testing.assert_close(together.logp[8:16], alone.logp, rtol=0, atol=1e-5)


def test_after_the_end_comes_padding(policy: TinyPolicy) -> None:
    u = draws(64)
    free, ended = policy.sample(Draw(PROMPTS, u)), policy.sample(Draw(PROMPTS, u, EOS))
    is_end = (free.responses == EOS).int()
    first_end = torch.where(is_end.any(1), is_end.argmax(1), 12)
    expected = torch.arange(12) <= first_end.unsqueeze(1)
    assert torch.equal(ended.mask, expected)  # the end token itself carries loss
    assert torch.equal(ended.responses, torch.where(expected, free.responses, EOS))
    # rows that have ended are dropped from the batch, which may change the rounding of the others
    torch.testing.assert_close(ended.logp, torch.where(expected, free.logp, 0.0), rtol=0, atol=1e-5)
    torch.testing.assert_close(ended.entropy, torch.where(expected, free.entropy, 0.0), rtol=0, atol=1e-5)
    assert 0 < (~expected).sum() < expected.numel()


def test_stops_early_when_every_row_has_ended() -> None:
    policy = TinyPolicy(PolicyConfig(vocab_size=10, context=24))
    with torch.no_grad():
        policy.head.bias[EOS] = 50.0
    rollout = policy.sample(Draw(PROMPTS, draws(16), EOS))
    assert rollout.mask.sum() == 16
    assert rollout.responses.shape == (16, 12)
    assert (rollout.responses == EOS).all()


def test_greedy_rows_take_the_most_likely_token(policy: TinyPolicy) -> None:
    greedy = torch.arange(16) % 2 == 0
    rollout = policy.sample(Draw(PROMPTS, draws(16), greedy=greedy))
    scores = score(policy, Responses(PROMPTS, rollout.responses, rollout.mask))
    assert torch.equal(rollout.responses[greedy], scores.distribution.argmax(0)[greedy])
    sampled = policy.sample(Draw(PROMPTS, draws(16)))
    assert torch.equal(rollout.responses[~greedy], sampled.responses[~greedy])
    assert (scores.logp - rollout.logp).abs().max() < 1e-5


def test_one_token_prompts() -> None:
    policy = TinyPolicy(PolicyConfig(vocab_size=10, context=24))
    rollout = policy.sample(Draw(PROMPTS[:, :1], draws(8)))
    scores = score(policy, Responses(PROMPTS[:, :1], rollout.responses, rollout.mask))
    assert (scores.logp - rollout.logp).abs().max() < 1e-5


def test_same_input_same_bits_and_nothing_global(policy: TinyPolicy) -> None:
    before = torch.get_rng_state()
    one, two = policy.sample(Draw(PROMPTS, draws(32))), policy.sample(Draw(PROMPTS, draws(32)))
    assert torch.equal(one.responses, two.responses)
    assert torch.equal(one.logp, two.logp)
    assert torch.equal(before, torch.get_rng_state())
    assert not one.logp.is_inference()
    assert not one.logp.requires_grad


@pytest.mark.parametrize("eos", [None, EOS])
@pytest.mark.parametrize("cached", [True, False], ids=["cache kept", "prompts read again"])
@pytest.mark.parametrize("cuts", [(1, 2, 7), (4,), (11,)])
def test_drawing_in_pieces_equals_drawing_at_once(
    policy: TinyPolicy, eos: int | None, cached: bool, cuts: tuple[int, ...]
) -> None:
    u = draws(64)
    whole, pieces = policy.sample(Draw(PROMPTS, u, eos)), Rollout.empty(64, 12, eos)
    decoder = Decoder(policy, PROMPTS, 64, 12)
    for start, stop in zip((0, *cuts), (*cuts, 12), strict=True):
        if cached:
            decoder.reload()
        else:
            seen = torch.cat([PROMPTS.repeat_interleave(16, 0), pieces.responses[:, :start]], 1)
            decoder = Decoder(policy, seen, 64, 12 - start)
        extend(pieces, decoder, Draw(PROMPTS, u, eos), range(start, stop))
    assert torch.equal(pieces.responses, whole.responses)
    assert torch.equal(pieces.mask, whole.mask)
    torch.testing.assert_close(pieces.logp, whole.logp, rtol=0, atol=1e-5)
    torch.testing.assert_close(pieces.entropy, whole.entropy, rtol=0, atol=1e-5)


def test_a_batch_that_has_ended_is_left_alone(policy: TinyPolicy) -> None:
    rollout = Rollout.empty(4, 12, EOS)
    rollout.mask[:, 3:] = False
    extend(rollout, Decoder(policy, PROMPTS, 4, 12), Draw(PROMPTS, draws(4), EOS), range(3, 12))
    assert (rollout.responses == EOS).all()
    assert not rollout.mask[:, 3:].any()


def test_current_weights_are_used_after_an_update(policy: TinyPolicy) -> None:
    changed = TinyPolicy(policy.config, seed=8)
    before = changed.sample(Draw(PROMPTS, draws(8))).logp
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter.add_(0.05)
    after = changed.sample(Draw(PROMPTS, draws(8)))
    assert not torch.equal(before, after.logp)
    assert (score(changed, Responses(PROMPTS, after.responses, after.mask)).logp - after.logp).abs().max() < 1e-5

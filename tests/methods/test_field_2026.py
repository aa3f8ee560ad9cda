"""Losses of 2026 against numbers worked out by hand: where no public code could be executed, and at corners."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method

Make = Callable[..., Batch]


def coefficients(text: str, batch: Batch) -> torch.Tensor:
    """Without aggregation: one number per token."""
    return parse_method(f"{text}+token-sum")(batch).coefficients


def share(text: str, batch: Batch) -> float:
    return float(parse_method(text)(batch).metrics["share_clipped"])


# -- DRPO, SPO: the gradient turns back where the penalty outweighs the ratio ------------------------------------------


def test_drpo_turns_back_where_the_probability_has_moved_by_eps(make_rows: Make) -> None:
    q = math.exp(-1.0) / 1.5  # the anchor of a ratio of 1.5 with log pi = -1
    moved = 0.5 * q
    for eps, sign in ((moved * 0.99, -1.0), (moved * 1.01, 1.0)):
        value = float(coefficients(f"drpo(eps={eps})", make_rows([[math.log(1.5)]], [1.0])))
        assert math.copysign(1.0, value) == sign
        assert value == pytest.approx(1.5 * (1 - moved / eps))


@pytest.mark.parametrize(("log", "advantage", "expected"), [(0.0, 1.0, 1.0), (0.2, 2.0, None), (-0.3, -1.0, None)])
def test_spo_is_the_derivative_of_its_loss(make_rows: Make, log: float, advantage: float, expected: float) -> None:
    ratio = math.exp(log)
    by_hand = advantage * ratio - abs(advantage) * ratio * (ratio - 1) / 0.2
    assert float(coefficients("spo", make_rows([[log]], [advantage]))) == pytest.approx(by_hand)
    assert expected is None or by_hand == expected


def test_a_weight_added_to_drpo_multiplies_both_terms(make_rows: Make) -> None:
    batch = make_rows([[0.5, -0.2]], [1.0])
    alone, weighted = coefficients("drpo(eps=0.1)", batch), coefficients("drpo(eps=0.1)+tis(cap=0.25)", batch)
    assert torch.allclose(weighted, alone * 0.25)


def test_drpo_without_a_clamp_is_finite_where_its_value_is(make_rows: Make) -> None:
    """Log-ratio 50: r (r - 1) overflows in float32, q r is the token's probability."""
    batch = make_rows([[50.0]], [1.0])
    single = replace(batch, logp=batch.logp.float(), behavior_logp=batch.behavior_logp.float())
    narrow, wide = coefficients("drpo(clamp=inf,eps=0.1)", single), coefficients("drpo(clamp=inf,eps=0.1)", batch)
    assert float(narrow) == pytest.approx(float(wide), rel=1e-4)


# -- M2 mask -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", ["outward", "all"])
def test_the_m2_mask_stays_within_its_budget_where_tokens_tie(make_rows: Make, tokens: str) -> None:
    batch = make_rows([[0.1, 0.1, 0.1, 0.3, 0.3, 0.3]], [1.0])
    assert kept(f"m2-mask(tokens={tokens})", batch) == [True] * 3 + [False] * 3  # all six have a mean of 0.05
    assert kept(f"m2-mask(tokens={tokens},budget=0.051)", batch) == [True] * 6
    smallest = make_rows([[0.3, 0.3]], [1.0])
    assert kept(f"m2-mask(tokens={tokens})", smallest) == [tokens == "all"] * 2


# -- GBPO --------------------------------------------------------------------------------------------------------------


def test_gbpo_moves_toward_its_target_from_both_sides(make_rows: Make) -> None:
    reward = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    target = 0.8 + 0.4 / (1 + math.exp(-1.0))  # (1 - median 0) / tau 1
    for gap in (-0.01, 0.01):
        batch = make_rows([[0.0], [0.0], [math.log(target + gap)]], [-0.5, -0.5, 1.0], reward=reward)
        value = coefficients("gbpo(std=none)", batch)[0, 2, 0]
        assert float(value) == pytest.approx(-math.copysign(target + gap, gap))


def test_the_group_median_is_the_mean_of_the_middle_two_or_the_lower(make_rows: Make) -> None:
    reward = torch.tensor([[3.0, 0.0, 1.0, 9.0]], dtype=torch.float64)
    batch = replace(make_rows([[0.0]] * 4, [0.0] * 4, reward=reward), advantage=None)
    found = coefficients("reinforce+mc-grpo(rescale=off,eps=1)", batch)[0, :, 0]
    assert torch.allclose(found, torch.tensor([2.0, -1.0, 0.0, 8.0], dtype=torch.float64) / (1 + 1))  # |R - 1|: 0 1 2 8
    rescaled = coefficients("reinforce+mc-grpo(eps=1)", batch)[0, :, 0]
    assert torch.allclose(rescaled, found * 4 / 3)


def test_gbpo_leaves_a_ratio_alone_that_is_at_its_target_up_to_rounding(make_rows: Make) -> None:
    """On policy a row at its group's median has target 1 and ratio 1 but for the rounding of two forward passes."""
    reward = torch.tensor([[0.0, 1.0, 2.0]], dtype=torch.float64)
    found = coefficients("gbpo", make_rows([[0.0], [3e-6], [0.0]], [-1.0, 0.5, 1.0], reward=reward))[0, :, 0]
    assert found[1] == 0
    assert found[0] < 0 < found[2]


# -- CPPO --------------------------------------------------------------------------------------------------------------


def shifted(make_rows: Make, before: list[float], after: list[float], advantage: float = 1.0) -> Batch:
    """One row whose tokens had these probabilities under the sampler, and have those now."""
    old, new = (torch.tensor([[values]], dtype=torch.float64).log() for values in (before, after))
    return make_rows([[0.0] * len(before)], [advantage], logp=new, behavior_logp=old)


def kept(text: str, batch: Batch) -> list[bool]:
    return (coefficients(text, batch)[0, 0] != 0).tolist()


def test_cppo_allows_late_tokens_what_it_denies_early_ones(make_rows: Make) -> None:
    batch = shifted(make_rows, [0.5] * 6, [0.6, 0.5, 0.5, 0.5, 0.5, 0.6])
    assert kept("cppo(delta=0.07,floor=0.5,budget=100)", batch) == [False, True, True, True, True, True]


def test_cppo_stops_when_the_prefix_has_spent_its_budget(make_rows: Make) -> None:
    """0.3 of delta 0.5 goes to the first token, rejected shifts count too, and the budget returns little per token."""
    batch = shifted(make_rows, [0.5] * 4, [0.8, 0.8, 0.8, 0.55])
    assert kept("cppo(delta=0.5,floor=1,budget=0.001,scale=0)", batch) == [True, False, False, False]
    assert kept("cppo(delta=0.5,floor=1,budget=100)", batch) == [True] * 4
    back = shifted(make_rows, [0.5] * 4, [0.8, 0.8, 0.8, 0.55], advantage=-1.0)
    assert kept("cppo(delta=0.5,floor=1,budget=0.001,scale=0)", back) == [True] * 4


def test_cppo_counts_positions_over_the_row(make_rows: Make) -> None:
    batch = shifted(make_rows, [0.5] * 4, [0.6, 0.5, 0.6, 0.5])
    batch.mask[0, 0, 3] = False  # the third token is the row's last: weight `floor`
    assert kept("cppo(delta=0.06,floor=0.5,budget=100)", batch)[2]
    assert not kept("cppo(delta=0.06,floor=0.5,budget=100,horizon=padded)", batch)[2]


def test_cppo_gives_the_only_token_of_a_row_the_weight_of_a_first_one(make_rows: Make) -> None:
    batch = shifted(make_rows, [0.5], [0.66])  # moved by 0.16, of which 0.8 are below delta 0.15
    assert kept("cppo", batch) == [False]
    assert kept("cppo(horizon=padded)", batch) == [True]


# -- SAT ---------------------------------------------------------------------------------------------------------------


def test_sat_halves_the_outward_end_just_above_the_quantile(make_rows: Make) -> None:
    """Nine tokens at 0.05 and one at d: the 0.5 quantile is 0.05, hence k = 1 / (1 + (d / 0.05)^2) for d."""
    end = 0.2 / (1 + (0.08 / 0.05) ** 2)
    for log, advantage, clipped in ((0.08, 1.0, end < math.expm1(0.08)), (-0.08, 1.0, False), (0.08, -1.0, False)):
        batch = make_rows([[0.05]] * 9 + [[log]], [0.0] * 9 + [advantage])
        assert (share("sat(quantile=0.5)", batch) > 0) == clipped
    assert end < math.expm1(0.08) < 0.2  # clip itself keeps the token


def test_sat_is_clip_for_tokens_all_alike(make_rows: Make) -> None:
    batch = make_rows([[0.15]] * 4, [1.0] * 4)
    assert torch.equal(coefficients("sat", batch), coefficients("clip", batch))


# -- PNPO, the cap for negatives, F-GRPO, KPop, BandPO, GIPO -----------------------------------------------------------


def test_pnpo_weighs_with_the_root_of_the_prefix_product(make_rows: Make) -> None:
    batch = make_rows([[0.4, -0.2, 0.3, 2.9]], [1.0])
    batch.mask[0, 0, 1] = False
    expected = [math.exp(0.4), 0.0, math.exp(0.7 / 2), 0.0]  # the last: e^(3.6/3) = 3.3 is beyond 2
    assert coefficients("pnpo", batch)[0, 0].tolist() == pytest.approx(expected)


def test_the_cap_for_negatives_leaves_the_others_alone(make_rows: Make) -> None:
    batch = make_rows([[math.log(30.0)], [math.log(30.0)], [math.log(0.5)]], [1.0, -1.0, -1.0])
    assert coefficients("negatives-cap", batch)[0, :, 0].tolist() == pytest.approx([30.0, -2.0, -0.5])
    assert share("negatives-cap", batch) == pytest.approx(1 / 3)


def test_f_grpo_takes_weight_from_solved_prompts(make_rows: Make) -> None:
    reward = torch.tensor([[1.0, 1.0, 1.0, 0.0]], dtype=torch.float64)
    batch = replace(make_rows([[0.0]] * 4, [0.0] * 4, reward=reward), advantage=None)
    plain = coefficients("reinforce", batch)
    assert torch.allclose(coefficients("reinforce+f-grpo(gamma=2)", batch), plain / 16)
    assert torch.allclose(coefficients("reinforce+f-grpo(right=2,wrong=-1)", batch), plain * (1 - 1.75 / 3))


def test_kpop_rejects_by_the_larger_direction(make_rows: Make) -> None:
    q, p = 0.9, 0.5
    forward = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    backward = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert forward < backward
    batch = shifted(make_rows, [q], [p])
    for limit, keeps in ((backward * 1.001, True), (backward * 0.999, False)):
        assert kept(f"kpop(limit={limit})", batch) == [keeps]


def test_kpop_admits_ratios_of_unlikely_tokens_that_it_rejects_for_likely_ones(make_rows: Make) -> None:
    assert kept("kpop(limit=0.1)", shifted(make_rows, [0.01, 0.4], [0.02, 0.8])) == [True, False]


@pytest.mark.parametrize(("divergence", "bound"), [("tv", 1 + 0.05 / 0.2), ("chi2", 1 + math.sqrt(0.05 * 0.8 / 0.2))])
def test_bandpo_has_the_bounds_of_the_closed_forms(make_rows: Make, divergence: str, bound: float) -> None:
    for ratio, keeps in ((bound - 1e-9, True), (bound + 1e-9, False), (2 - bound - 1e-9, True)):
        assert kept(f"bandpo(divergence={divergence})", shifted(make_rows, [0.2], [0.2 * ratio])) == [keeps]


def test_bandpo_with_kl_is_dppo_kl_without_its_cap(make_batch: Make) -> None:
    batch = make_batch(spread=0.6)
    behavior = batch.behavior_logp.clamp(max=-1e-3)
    batch = replace(batch, behavior_logp=behavior)
    assert torch.allclose(coefficients("bandpo", batch), coefficients("dppo-kl(cap=inf,live=on)", batch))


def test_gipo_peaks_at_the_square_of_sigma(make_rows: Make) -> None:
    logs = torch.linspace(-1, 1, 201, dtype=torch.float64).tolist()
    values = coefficients("gipo", make_rows([logs], [1.0]))[0, 0]
    assert logs[int(values.argmax())] == pytest.approx(0.25)  # log r - (log r)^2 / (2 sigma^2)
    assert float(values.max()) == pytest.approx(math.exp(0.125))


def test_sampo_leaves_groups_without_signal_out_of_the_denominator(make_batch: Make) -> None:
    batch = make_batch()
    batch.reward[1] = 1.0
    mixed = (batch.reward != batch.reward[:, :1]).any(1)
    update = parse_method("sampo")(batch)
    same = parse_method("gspo(low=3e-3,high=4e-3)+zero-variance")(batch)
    assert torch.equal(update.coefficients, same.coefficients)
    assert (update.coefficients[~mixed] == 0).all()


# -- VESPO, eq. 20: grad J = E_mu[W^c1 exp(c2 (1 - W)) A grad log pi(y)], A = R - mean reward of the prompt ------------


def test_vespo_paper_is_the_gradient_of_the_paper(make_batch: Make) -> None:
    batch = make_batch(shape=(2, 4, 6), spread=0.2)
    update = parse_method("vespo:paper")(batch)
    assert update.coefficients.abs().sum() > 0
    rows = [(p, g) for p in range(2) for g in range(4)]
    for p, g in rows:
        advantage = float(batch.reward[p, g] - sum(batch.reward[p]) / 4)  # no standard deviation
        real = [t for t in range(6) if batch.mask[p, g, t]]
        ratio = math.exp(sum(float(batch.logp[p, g, t] - batch.behavior_logp[p, g, t]) for t in real))
        power, decay = (2, 3) if advantage >= 0 else (3, 2)
        expected = ratio**power * math.exp(decay * (1 - ratio)) * advantage / len(rows)  # of every token: no length
        for t in range(6):
            assert float(update.coefficients[p, g, t]) == pytest.approx(expected if t in real else 0.0, abs=1e-12)

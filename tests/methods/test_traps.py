"""The 25 traps of the catalog of stabilizers, each with what this project does instead."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, NonFiniteEvidence, parse_method
from vcpo_bench.methods.core.ess import ess_ratio_of_logs
from vcpo_bench.methods.parts.seq_mean_token_mean import SeqMeanTokenMean

Make = Callable[..., Batch]


def scale(text: str, batch: Batch) -> float:
    return float(parse_method(text)(batch).step_scale)


def coefficients(text: str, batch: Batch) -> torch.Tensor:
    return parse_method(text)(batch).coefficients


def test_01_undefined_ess_shrinks_the_step_and_never_opens_it() -> None:
    rows = torch.ones(2, 3, dtype=torch.bool)
    for bad in (math.inf, math.nan):
        logs = torch.tensor([[0.0, 0.0, bad], [0.0, 0.0, 0.0]], dtype=torch.float64)
        assert float(ess_ratio_of_logs(logs, rows)) <= 1 / 6 + 1e-12  # (sum w)^2 / (B sum w^2) rounds
    assert float(ess_ratio_of_logs(torch.zeros(2, 3), ~rows)) == 0.0


def test_01_a_weight_that_overflows_does_not_restore_the_full_rate(make_rows: Make) -> None:
    batch = make_rows([[800.0], [0.0], [0.0], [0.0]], [1.0, -1.0, 1.0, -1.0])
    assert scale("vcpo", batch) == pytest.approx(0.5)  # ESS 1 of 4
    assert scale("vcpo(variant=released)", batch) == 1.0  # the released code, kept as an option


def test_02_ess_does_not_depend_on_the_scale_of_the_weights(make_rows: Make) -> None:
    steps = [scale("clip+ess", make_rows([[a + shift], [shift]], [1.0, -1.0])) for a in [1.0] for shift in (0.0, -40.0)]
    assert steps[0] == pytest.approx(steps[1], rel=1e-9)  # a shift by 40 costs the log-ratio two digits of sixteen
    assert (
        scale("clip+ess(space=raw)", make_rows([[-39.0], [-40.0]], [1.0, -1.0])) < 1e-6
    )  # 1e-8 drowns weights of e^-78


def test_02_on_long_rows_ess_sits_at_its_floor(make_rows: Make) -> None:
    batch = make_rows([[1.0 + i] * 60 for i in range(4)], [1.0, -1.0, 1.0, -1.0])
    assert scale("clip+ess(rule=linear)", batch) == pytest.approx(1 / 4, rel=1e-6)  # the others weigh e^-60 and less


def test_03_the_weight_enters_opob_once_unless_the_released_code_is_asked_for(make_rows: Make) -> None:
    reward = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    batch = replace(make_rows([[math.log(2.0)], [0.0]], [0.0, 0.0], reward=reward), advantage=None)
    once = coefficients("reinforce+opob(std=off)", batch)[0, :, 0]
    twice = coefficients("reinforce+opob(std=off,weight=released)", batch)[0, :, 0]
    assert float(once[0]) == pytest.approx((1 - 4 / 5) / 2)  # W = 4, 1
    assert float(twice[0]) == pytest.approx((1 - 16 / 17) / 2)  # W = 16, 1


def test_03_empty_rows_do_not_divide_by_zero(make_batch: Make) -> None:
    batch = make_batch()
    batch.mask[0, 0] = False
    assert torch.isfinite(coefficients("reinforce+opob(length=on)", batch)).all()


def test_04_a_batch_that_is_filtered_completely_gives_zeros_and_no_crash(make_rows: Make) -> None:
    update = parse_method("icepop+ess")(make_rows([[9.0], [-9.0]], [1.0, -1.0]))
    assert (update.coefficients == 0).all()
    assert float(update.metrics["ess_ratio_used"]) == 0.0
    assert float(update.metrics["share_clipped"]) == 1.0


def test_05_bands_bound_current_over_behavior(make_rows: Make) -> None:
    batch = make_rows([[math.log(1.2)], [math.log(1 / 1.2)]], [1.0, 1.0])
    kept = coefficients("reinforce+band(level=token,low=0.95,high=1.3)", batch)[0, :, 0] != 0
    assert kept.tolist() == [True, False]


def test_06_the_veto_acts_on_its_own(make_rows: Make) -> None:
    batch = make_rows([[0.0, -12.0], [0.0, 0.0]], [1.0, 1.0])
    kept = (coefficients("reinforce+veto", batch) != 0).all(-1)[0]
    assert kept.tolist() == [False, True]


def test_07_decoupled_corrects_for_the_behavior_policy_by_default(make_batch: Make) -> None:
    batch = make_batch()
    explicit = coefficients("clip(anchor=proximal)+token-tis(cap=inf,of=proximal)", batch)
    assert torch.allclose(coefficients("decoupled", batch), explicit)
    assert not torch.allclose(coefficients("clip(anchor=proximal)", batch), explicit)


def test_08_cispo_bounds_are_absolute_and_the_lower_one_is_off(make_rows: Make) -> None:
    batch = make_rows([[math.log(9.0)], [math.log(0.01)]], [1.0, 1.0])
    assert coefficients("cispo", batch)[0, :, 0].tolist() == pytest.approx([2.5, 0.005])
    assert coefficients("cispo(cap=1.28,low=0.8)", batch)[0, :, 0].tolist() == pytest.approx([0.64, 0.4])


def test_09_fully_masked_rows_are_skipped_or_counted_as_asked(make_rows: Make) -> None:
    batch = make_rows([[0.0], [0.0], [0.0]], [1.0, 1.0, 1.0])
    batch.mask[0, 2] = False
    assert float(coefficients("reinforce", batch)[0, 0]) == pytest.approx(1 / 2)
    assert float(coefficients("reinforce+seq-mean-token-mean(empty=counted)", batch)[0, 0]) == pytest.approx(1 / 3)


def test_10_rejected_tokens_stay_in_the_denominator_unless_dropped(make_rows: Make) -> None:
    batch = make_rows([[9.0, 0.0]], [1.0])
    counted = coefficients("reinforce+band(high=2,level=token,low=0.5)+token-mean", batch)[0, 0, 1]
    dropped = coefficients("reinforce+band(high=2,level=token,low=0.5,rejected=dropped)+token-mean", batch)[0, 0, 1]
    assert (float(counted), float(dropped)) == (0.5, 1.0)


def test_11_masks_leave_baselines_alone_and_admissions_do_not(make_rows: Make) -> None:
    reward = torch.tensor([[1.0, 0.0, 0.0, 1.0]], dtype=torch.float64)
    version = torch.tensor([[[9], [9], [9], [0]]])
    batch = replace(make_rows([[0.0]] * 4, [0.0] * 4, reward=reward, version=version, now=9), advantage=None)
    batch.behavior_logp[0, 3] -= 9.0
    masked = coefficients("reinforce+band+group-mean+token-sum", batch)[0, :, 0]
    admitted = coefficients("reinforce+group-mean+max-lag+token-sum", batch)[0, :, 0]
    assert masked.tolist() == pytest.approx([0.5, -0.5, -0.5, 0.0])
    assert admitted.tolist() == pytest.approx([2 / 3, -1 / 3, -1 / 3, 0.0])


def test_12_sequence_is_the_product_and_geometric_the_mean(make_rows: Make) -> None:
    batch = make_rows([[math.log(2.0), math.log(2.0)]], [1.0])
    assert float(coefficients("tis+token-sum", batch)[0, 0, 0]) == pytest.approx(4.0)
    assert float(coefficients("geo-tis+token-sum", batch)[0, 0, 0]) == pytest.approx(2.0)
    mixed = "token-tis(cap=inf)+band(high=3,low=0.3)+token-sum"  # decide by s, multiply by the raw token ratio
    batch = make_rows([[math.log(8.0), math.log(0.5)]], [1.0])
    assert coefficients(mixed, batch)[0, 0].tolist() == pytest.approx([8.0, 0.5])


def test_13_divergence_filters_say_which_way_round(make_rows: Make) -> None:
    batch = make_rows([[1.0], [-1.0]], [1.0, 1.0])
    forward = coefficients("reinforce+divergence(high=0.5,reduce=token)", batch)[0, :, 0] != 0
    inverse = coefficients("reinforce+divergence(high=0.5,inverse=on,reduce=token)", batch)[0, :, 0] != 0
    assert forward.tolist() == [False, True]  # k3 = r - 1 - log r: 0.72 and 0.37
    assert inverse.tolist() == [True, False]


def test_14_ratios_follow_the_current_policy_unless_of_says_proximal(make_batch: Make) -> None:
    batch = make_batch(reward=torch.tensor([[1.0, 0.0, 1.0, 0.0]] * 3, dtype=torch.float64))
    moved = replace(batch, logp=batch.logp - 0.1)
    live, frozen = "token-tis", "token-tis(of=proximal)"
    assert not torch.allclose(coefficients(live, batch), coefficients(live, moved))
    assert torch.allclose(coefficients(frozen, batch), coefficients(frozen, moved))


def test_15_clipping_against_a_recomputed_policy_is_visibly_off(make_batch: Make) -> None:
    batch = make_batch()
    recomputed = replace(batch, proximal_logp=batch.logp)
    off = parse_method("clip(anchor=proximal)")
    assert float(off(recomputed).metrics["share_clipped"]) == 0.0
    assert off.anchors["ratio"] == "proximal"
    assert parse_method("clip").anchors["ratio"] == "behavior"
    assert float(parse_method("clip")(recomputed).metrics["share_clipped"]) > 0.0


def test_16_truncated_sampling_shows_as_a_ratio_of_the_kept_mass(make_rows: Make) -> None:
    kept = 0.9  # the engine reports log(p / kept); the ratio is kept per token, kept^L per row
    batch = make_rows([[math.log(kept)] * 5], [1.0])
    assert float(coefficients("tis+token-sum", batch)[0, 0, 0]) == pytest.approx(kept**5)


def test_17_dppo_has_its_own_cap_and_bounds() -> None:
    method = parse_method("dppo-tv")
    assert (method.cap, method.low, method.high) == (20.0, 0.2, 0.2)  # type: ignore[attr-defined]
    assert parse_method("dppo-tv(cap=3)").canonical == "dppo-tv(cap=3)"


def test_18_beyond_its_clamp_a_differentiated_ratio_has_no_gradient(make_rows: Make) -> None:
    batch = make_rows([[12.0, 12.0], [-1.0, 9.0]], [-1.0, -1.0])
    clamped = coefficients("gspo(clamp=10)+token-sum", batch)[0]
    assert (clamped[0] == 0).all()
    assert (clamped[1] != 0).all()


def test_19_a_zero_advantage_gets_a_zero_coefficient_whatever_the_branch(make_rows: Make) -> None:
    batch = make_rows([[2.0], [-2.0]], [0.0, 0.0])
    for text in ("dppo-tv", "vespo", "clip", "sapo", "rec"):
        assert (coefficients(text, batch) == 0).all()


def test_20_vespo_does_not_read_the_sign_from_a_masked_first_token(make_rows: Make) -> None:
    batch = make_rows([[0.0, 0.5, 0.5]], [-1.0])
    batch.mask[0, 0, 0] = False
    batch.advantage[0, 0, 0] = 0.0  # type: ignore[index]
    w, k, lam = math.e, 3.0, 2.0
    expected = -(w**k) * math.exp(lam * (1 - w))
    assert float(coefficients("vespo+token-sum", batch)[0, 0, 1]) == pytest.approx(expected)
    positive = -(w**2) * math.exp(3 * (1 - w))
    assert float(coefficients("vespo(sign=first)+token-sum", batch)[0, 0, 1]) == pytest.approx(positive)


def test_21_clip_cov_draws_the_same_tokens_for_the_same_batch(make_batch: Make) -> None:
    batch = make_batch((4, 8, 12), spread=0.05)
    text = "clip-cov(ceiling=inf,floor=-inf,share=0.2)"
    assert torch.equal(coefficients(text, batch), coefficients(text, batch))
    assert not torch.equal(coefficients(text, batch), coefficients(text, replace(batch, now=6)))


def test_22_aggregation_constants_are_exact(make_batch: Make) -> None:
    batch = make_batch()
    ev = parse_method("reinforce").evidence(batch)
    total = (SeqMeanTokenMean().factor(ev).unsqueeze(-1) * batch.mask).sum()
    assert float(total) == pytest.approx(1.0, abs=1e-15)  # four ulp; 1 / (L + 1e-8) would miss it by 1e-9


def test_23_products_are_clamped_before_they_are_exponentiated(make_rows: Make) -> None:
    batch = make_rows([[60.0, 60.0], [0.0, 0.0]], [1.0, -1.0])
    batch.behavior_logp[0, 1, 1] = -torch.inf
    batch.mask[0, 1, 1] = False  # 0 * inf after masking would be NaN
    single = replace(
        batch,
        logp=batch.logp.float(),
        behavior_logp=batch.behavior_logp.float(),
        advantage=batch.advantage.float(),  # type: ignore[union-attr]
    )
    for text in ("tis(cap=inf)", "vcpo(baseline=group)", "mis(cap=inf)", "vespo", "gspo", "token-tis(cap=inf)"):
        assert torch.isfinite(coefficients(text, single)).all(), text


def test_24_not_a_number_on_a_valid_token_is_an_error_with_an_address(make_batch: Make) -> None:
    batch = make_batch()
    batch.mask[1, 2, 0] = True
    batch.behavior_logp[1, 2, 0] = math.nan
    for text in ("clip", "vespo", "vcpo", "p3o", "reinforce"):
        with pytest.raises(NonFiniteEvidence) as caught:
            parse_method(text)(batch)
        assert (caught.value.field, caught.value.row) == ("behavior_logp", (1, 2))
    dropped = parse_method("clip(nonfinite=drop)")(batch).coefficients
    assert float(dropped[1, 2, 0]) == 0.0
    assert torch.isfinite(dropped).all()


@pytest.mark.parametrize(("how", "first", "others"), [("drop", 0.0, 1.0), ("one", 0.5, 0.5), ("zero", 0.0, 0.5)])
def test_24_what_frameworks_do_instead_is_a_parameter(make_rows: Make, how: str, first: float, others: float) -> None:
    batch = make_rows([[math.nan, 0.0]], [1.0])
    found = coefficients(f"token-tis(nonfinite={how})", batch)[0, 0]
    assert found.tolist() == pytest.approx([first, others])
    assert scale(f"vcpo(baseline=group,nonfinite={how})", batch) == pytest.approx(1.0)


def test_25_the_three_m2po_are_three(make_batch: Make) -> None:
    batch = make_batch((4, 8, 12), spread=1.0)
    clips = coefficients("m2po", batch)
    outward = coefficients("token-tis(cap=inf)+m2-mask", batch)
    everything = coefficients("token-tis(cap=inf)+m2-mask(of=proximal,tokens=all)", batch)
    assert not torch.allclose(clips, outward)
    assert not torch.allclose(outward, everything)
    assert not torch.allclose(clips, everything)

"""Where nothing is to be learned, coefficients are 0: tokens that masks reject or that are no numbers, empty rows."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.adapters.coefficients import Coefficients, StepRows
from vcpo_bench.methods import Batch, Method, method_names, parse_method

Make = Callable[..., Batch]
MASKS = ["veto(low=0.7,high=1.4)", "band(level=token,low=0.7,high=1.4)", "band(level=geometric,low=0.9,high=1.1)"]
FIRST = (0, 0, 0)


def with_series(method: Method) -> Method:
    return method.with_series([0.5, 0.25], 0) if method.needs_series else method


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", method_names())
def test_a_rejected_token_has_no_gradient(name: str, mask: str, make_batch: Make) -> None:
    batch = make_batch((3, 4, 6), spread=0.4)
    kept = parse_method(f"reinforce+raw+{mask}")(replace(batch, reward=torch.ones_like(batch.reward))).coefficients != 0
    rejected = batch.mask & ~kept
    assert rejected.any()
    method = parse_method(f"{name}+{mask}")
    if not method.parts.regularizers:
        assert (with_series(method)(batch).coefficients[rejected] == 0).all()


def test_no_mask_rejects_a_regularizer(make_batch: Make) -> None:
    batch = make_batch()
    alone = parse_method("reinforce+kl(kind=k1)")(batch).coefficients - parse_method("reinforce")(batch).coefficients
    both = parse_method(f"reinforce+kl(kind=k1)+{MASKS[0]}")(batch).coefficients
    masked = parse_method(f"reinforce+{MASKS[0]}")(batch).coefficients
    torch.testing.assert_close(both - masked, alone)


@pytest.mark.parametrize("name", [*method_names(), "clip+kl(kind=k1)", "tis+entropy"])
def test_a_token_that_is_no_number_gets_the_coefficient_zero(name: str, make_batch: Make) -> None:
    batch = make_batch()
    batch.mask[FIRST] = True
    batch.behavior_logp[FIRST] = torch.nan
    update = with_series(replace(parse_method(name), nonfinite="zero"))(batch)
    assert update.coefficients[FIRST] == 0
    assert update.entropy_coefficients is None or update.entropy_coefficients[FIRST] == 0
    assert torch.isfinite(update.coefficients).all()


@pytest.mark.parametrize("logs", [(5.0, 5.0), (-5.0, -15.0), (0.0, 6.0)])
@pytest.mark.parametrize("method", ["vcpo", "clip+ess", "tis+ess(rule=linear)", "psis+ess"])
def test_rows_without_tokens_leave_the_step_alone(method: str, logs: tuple[float, ...], make_rows: Make) -> None:
    alone = make_rows([[one, 0.0] for one in logs], [1.0, -1.0])
    more = make_rows([[one, 0.0] for one in (*logs, *[0.0] * 6)], [1.0, -1.0] + [0.0] * 6)
    more.mask[:, len(logs) :] = False
    wanted, found = parse_method(method)(alone), parse_method(method)(more)
    torch.testing.assert_close(found.step_scale, wanted.step_scale)
    for name in ("ess_ratio", "ess_ratio_used"):
        torch.testing.assert_close(found.metrics[name], wanted.metrics[name], equal_nan=True)
    released = parse_method("clip+ess(space=raw)")
    assert float(released(more).step_scale) != pytest.approx(float(released(alone).step_scale), rel=1e-3)


def test_rows_that_a_mask_drops_still_count_in_the_ess(make_rows: Make) -> None:
    batch = make_rows([[0.0, 0.0], [0.0, -12.0]], [1.0, -1.0])
    for rejected in ("counted", "dropped"):
        update = parse_method(f"tis+veto(rejected={rejected})")(batch)
        assert float(update.metrics["ess_ratio_used"]) == pytest.approx(0.5)


@pytest.mark.parametrize("shift", [0.0, -18.0, -25.0, -80.0])
@pytest.mark.parametrize(
    "name",
    [
        *("snis", "tis(normalize=counted)", "mis(low=0,normalize=on)", "psis"),
        *("tis(level=token,normalize=on)", "tis(level=segment,normalize=on)", "tis(level=geometric,normalize=on)"),
    ],
)
def test_self_normalized_weights_do_not_change_when_all_shrink(name: str, shift: float, make_rows: Make) -> None:
    def coefficients(by: float) -> torch.Tensor:
        return parse_method(name)(make_rows([[by], [by - 1.0], [by - 3.0]], [1.0, -1.0, 0.5])).coefficients

    torch.testing.assert_close(coefficients(shift), coefficients(0.0))
    assert coefficients(shift).abs().max() > 0.1


@pytest.mark.parametrize("size", [4, 7, 8, 16, 31])
@pytest.mark.parametrize("method", ["clip", "clip:paper", "sampo", "vcpo", "vtrace", "reinforce+zero-variance", "gbpo"])
def test_groups_of_equal_float32_rewards_teach_nothing(method: str, size: int) -> None:
    """Trainers hand rewards over in float32, where the mean of equal numbers is another number."""
    chosen = parse_method(method)
    for reward in (0.1, 0.2, 0.3, 0.7, 0.99, 100.7):
        logp = torch.full((size, 3), -1.0)
        rows = StepRows(
            logp=logp,
            behavior_logp=logp - 0.05 * torch.randn(size, 3, generator=torch.Generator().manual_seed(size)),
            mask=torch.ones(size, 3, dtype=torch.bool),
            reward=torch.full((size,), reward),
            group=torch.zeros(size, dtype=torch.int64),
            version=torch.zeros(size, dtype=torch.int64),
            proximal_logp=logp,
            score_norm_sq=torch.linspace(0.5, 2.0, size),
        )
        found = Coefficients(chosen, 3).decide(rows, 1).coefficients
        assert float(found.abs().max()) * size < 1e-5 * max(reward, 1.0), reward
    assert math.isfinite(float(found.sum()))


@pytest.mark.parametrize("text", ["clip(high=1e300)", "clip(low=1e300)", "gspo(high=1e300)", "tis(cap=1e300)"])
def test_a_bound_beyond_the_dtype_is_infinite(text: str, make_batch: Make) -> None:
    batch = make_batch()
    single = {name: getattr(batch, name).float() for name in ("logp", "behavior_logp", "proximal_logp")}
    assert torch.isfinite(parse_method(text)(replace(batch, **single)).coefficients).all()


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        ("tis", 1),
        ("snis", 2),
        ("snis(normalize=off)", 1),
        ("mis(normalize=counted)", 2),
        ("drpo", 1),
        ("spo+veto", 2),
        ("spo+veto(rejected=dropped)", 1),
        ("tba(nonfinite=zero)", 2),
        ("clip+veto", 1),
        ("vcpo", 1),
    ],
)
def test_methods_whose_numbers_changed_have_another_revision(text: str, revision: int) -> None:
    """Their cells get other keys. Nothing changed where every row has a token, as in every cell of a grid."""
    assert parse_method(text).version == revision

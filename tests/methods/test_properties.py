"""What every registered method, and a sample of combinations, must satisfy on any batch."""

import itertools
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tolerances import ROUNDING, SINGLE

from vcpo_bench.methods import Batch, Method, NonFiniteEvidence, describe, method_names, parse_method, part_names
from vcpo_bench.methods.reinforce import Reinforce

Make = Callable[..., Batch]
COMBINATIONS = [
    "clip+ess",
    "vespo+opob",
    "gspo(low=3e-4)+ess(base=0.55)",
    "tis+rloo+veto+kl(kind=k2)+token-mean",
    "clip(anchor=proximal)+token-tis(of=proximal)+otb+delta-ln",
    "cispo+goldilocks+band(rejected=dropped)+seq-mean-token-sum-norm",
    "reinforce+positive-only+rpp+token-sum+inverse-lag",
    "vcpo:paper",
    "clip-higher:paper",
]
PARTS = [f"reinforce+{name}" for name in part_names() if not describe(name).expression]
"""Parts that make no stabilizer of their own; the others are among the method names."""
EVERY = [*method_names(), *PARTS, *COMBINATIONS]
RANDOM = {"clip-cov"}
"""Which token is drawn depends on the order of the rows."""
NOT_PLAIN_ON_POLICY = {
    "asympo": "divides by the row's negative log-probability, whatever the lag",
    "clip-cov": "drops tokens by covariance, whatever the lag",
    "gbpo": "moves toward a target from the rewards of the group, whatever the lag",
    "gepo": "divides by the group's expected probability, which is not the row's own",
    "ppo-or": "takes the sign of the advantage, whatever the lag",
    "positive-only": "never learns from a negative advantage",
    "stapo": "silences by probability and entropy, whatever the lag",
}
PULLS = {"dro", "prime-rl", "tba", "kl-cov", "p3o", "kl"}
"""Methods and parts with a term that the advantage does not multiply: a coefficient without reward differences, too."""
NOT_CENTERED = {"raw", "asymre", "otb"}
"""Baselines that are not the mean of equal rewards."""
SAME_NUMBERS = [
    {"gspo", "gspo-token"},  # they differ for advantages per token only
    {"clip", "sat"},  # a tenth of the tokens lies beyond the clip's own ends here
    {
        "reinforce",
        "gac",
        "inverse-lag",
        "inverse-sqrt-lag",
        "dc-asgd",
        "length-surge",
        "acrl",
    },  # they act on gradient, step or memory
]
quick = settings(
    max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
seeds = st.integers(0, 10_000)


def tensors(batch: Batch) -> dict[str, torch.Tensor]:
    return {each.name: value for each in fields(batch) if isinstance(value := getattr(batch, each.name), torch.Tensor)}


def apply(batch: Batch, change: Callable[[torch.Tensor], torch.Tensor]) -> Batch:
    return replace(batch, **{name: change(value) for name, value in tensors(batch).items() if name != "rows"})


@pytest.fixture(params=EVERY)
def method(request: pytest.FixtureRequest) -> Method:
    method = parse_method(request.param)
    return method.with_series([0.5, 0.25], 0) if method.needs_series else method


@quick
@given(seed=seeds)
def test_on_policy_data_gives_the_plain_policy_gradient(method: Method, make_batch: Make, seed: int) -> None:
    batch = make_batch(seed=seed)
    same = replace(
        batch,
        behavior_logp=batch.logp,
        proximal_logp=batch.logp,
        reference_logp=batch.logp,
        void_turn=~batch.valid,
    )
    plain = Reinforce(extras=(*method.parts.admissions, method.parts.baseline, method.parts.aggregation))
    ours, theirs = method(same), plain(same).coefficients
    if {method.name, *(part.name for part in method.extras)} & set(NOT_PLAIN_ON_POLICY):
        return
    assert torch.allclose(ours.coefficients, theirs, **ROUNDING)


@quick
@given(seed=seeds)
def test_the_order_of_groups_and_responses_does_not_matter(method: Method, make_batch: Make, seed: int) -> None:
    if method.name in RANDOM:
        return
    batch = make_batch(seed=seed)
    generator = torch.Generator().manual_seed(seed)
    P, G = batch.valid.shape
    groups, rows = torch.randperm(P, generator=generator), torch.randperm(G, generator=generator)
    shuffled = method(apply(batch, lambda value: value[groups][:, rows]))
    straight = method(batch)
    assert torch.allclose(shuffled.coefficients, straight.coefficients[groups][:, rows], **ROUNDING)
    assert torch.allclose(shuffled.step_scale, straight.step_scale, **ROUNDING)


@quick
@given(seed=seeds)
def test_masked_tokens_get_exactly_zero_and_their_values_are_ignored(
    method: Method, make_batch: Make, seed: int
) -> None:
    batch = make_batch(seed=seed)
    clean = method(batch)
    assert (clean.coefficients[~batch.mask] == 0).all()
    names = ("logp", "behavior_logp", "proximal_logp", "reference_logp", "entropy", "sum_pi_sq")
    for bad in (float("nan"), float("inf"), float("-inf")):
        spoiled = {name: torch.where(batch.mask, getattr(batch, name), bad) for name in names}
        update = method(replace(batch, **spoiled))
        assert torch.equal(update.coefficients, clean.coefficients)
        assert torch.equal(update.step_scale, clean.step_scale)


@quick
@given(seed=seeds)
def test_padding_slots_change_nothing(method: Method, make_batch: Make, seed: int) -> None:
    batch = make_batch(seed=seed)
    P, G = batch.valid.shape

    def pad(value: torch.Tensor) -> torch.Tensor:
        filler: Any = True if value.dtype == torch.bool else 7
        larger = value.new_full((P + 1, G + 2, *value.shape[2:]), filler)
        larger[:P, :G] = value
        return larger

    padded = apply(batch, pad)
    padded.valid[P:], padded.valid[:, G:] = False, False
    update, plain = method(padded), method(batch)
    assert torch.allclose(update.coefficients[:P, :G], plain.coefficients, **ROUNDING)
    assert (update.coefficients[P:] == 0).all()
    assert (update.coefficients[:, G:] == 0).all()
    assert torch.allclose(update.step_scale, plain.step_scale, **ROUNDING)
    for name, value in plain.metrics.items():
        assert torch.allclose(update.metrics[name], value, equal_nan=True, **ROUNDING), name


@quick
@given(seed=seeds)
def test_equal_rewards_teach_nothing(method: Method, make_batch: Make, seed: int) -> None:
    batch = make_batch(seed=seed)
    update = method(replace(batch, reward=torch.full_like(batch.reward, seed % 99 / 100 + 0.01).float()))
    names = {method.name, *(part.name for part in method.extras)}
    if names & PULLS or method.parts.baseline.name in NOT_CENTERED:
        return
    assert update.coefficients.abs().max() < ROUNDING["atol"]


@quick
@given(seed=seeds)
def test_leading_axes_equal_a_loop(method: Method, make_batch: Make, seed: int) -> None:
    stack = make_batch((2, 3, 4, 6), seed=seed)
    together = method(stack)
    for one in range(2):
        alone = method(apply(stack, lambda value, one=one: value[one]))  # type: ignore[misc]
        assert torch.allclose(together.coefficients[one], alone.coefficients, **ROUNDING)
        assert torch.allclose(together.step_scale[one], alone.step_scale, **ROUNDING)
        for name, value in alone.metrics.items():
            assert torch.allclose(together.metrics[name][one], value, equal_nan=True, **ROUNDING), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_defaults_stay_finite_for_log_ratios_of_ten_thousand(
    method: Method, make_batch: Make, dtype: torch.dtype
) -> None:
    batch = make_batch(spread=1e4)
    single = {name: value.to(dtype) for name, value in tensors(batch).items() if value.dtype == torch.float64}
    update = method(replace(batch, **single))
    if "cap=inf" not in method.canonical and method.name != "decoupled":
        assert torch.isfinite(update.coefficients).all()
    assert 0.0 <= float(update.step_scale) <= 1.0


@pytest.mark.parametrize("field", ["logp", "behavior_logp", "reward"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_not_a_number_where_it_counts_is_refused(method: Method, make_batch: Make, field: str, bad: float) -> None:
    batch = make_batch(version=torch.full((3, 4, 6), 5))
    batch.mask[1, 2, 0] = True
    value = getattr(batch, field)
    value[1, 2, ...] = bad
    with pytest.raises(NonFiniteEvidence) as caught:
        method(batch)
    assert (caught.value.field, caught.value.row) == (field, (1, 2))


@quick
@given(seed=seeds)
def test_float32_agrees_with_float64(method: Method, make_batch: Make, seed: int) -> None:
    batch = make_batch(seed=seed)
    single = {name: value.float() for name, value in tensors(batch).items() if value.dtype == torch.float64}
    narrow, wide = method(replace(batch, **single)), method(batch)
    assert narrow.coefficients.dtype == torch.float32
    assume(torch.equal(narrow.coefficients == 0, wide.coefficients == 0))  # no token lies on the bound of a mask
    assert torch.allclose(narrow.coefficients.double(), wide.coefficients, **SINGLE)
    assert torch.allclose(narrow.step_scale.double(), wide.step_scale, **SINGLE)


def varied() -> dict[str, torch.Tensor]:
    """Rows from nearly on policy to far off it, a few vanished and a few spurious tokens, one group without signal."""
    generator = torch.Generator().manual_seed(3)
    shape = (6, 8, 10)
    spread = torch.logspace(-3.0, 0.5, 48, dtype=torch.float64)[torch.randperm(48, generator=generator)].reshape(
        6, 8, 1
    )
    logp = -0.2 - 1.5 * torch.rand(shape, generator=generator, dtype=torch.float64)
    logp[0, :, 0] = -8.0
    ratio = spread * torch.randn(shape, generator=generator, dtype=torch.float64)
    ratio[1, 1:5, 0] = -10.0
    ratio[3, :, 1] = 1.25  # between the ceilings of dual-clip and two-sided
    reward = torch.randint(0, 2, shape[:2], generator=generator).double()
    reward[2] = 1.0
    return {"logp": logp, "behavior_logp": logp - ratio, "reward": reward, "entropy": torch.full(shape, 0.2).double()}


def test_methods_differ_from_one_another_off_policy(make_batch: Make) -> None:
    batch = make_batch((6, 8, 10), seed=5, **varied())
    answers = {name: parse_method(name)(batch) for name in method_names()}
    for one, other in itertools.combinations(answers, 2):
        if any({one, other} <= same for same in SAME_NUMBERS):
            continue
        same = torch.allclose(answers[one].coefficients, answers[other].coefficients, **ROUNDING)
        same &= torch.allclose(answers[one].step_scale, answers[other].step_scale, **ROUNDING)
        assert not same, f"{one} and {other} give the same coefficients and step"


def test_the_batch_is_left_alone(method: Method, make_batch: Make) -> None:
    batch = make_batch()
    before = {name: value.clone() for name, value in tensors(batch).items()}
    method(batch)
    assert all(torch.equal(value, before[name]) for name, value in tensors(batch).items())

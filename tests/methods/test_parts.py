"""Baselines, aggregations, admissions, masks and regularizers against numbers worked out by hand."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, parse_method
from vcpo_bench.methods.core.drift import over_rows
from vcpo_bench.methods.core.ess import ess_ratio
from vcpo_bench.methods.core.selection import first_crossing
from vcpo_bench.methods.parts.opob import Opob, _weighted_quantile

Make = Callable[..., Batch]
REWARDS = [1.0, 0.0, 0.0, 1.0, 1.0]


def advantages(text: str, batch: Batch) -> list[float]:
    update = parse_method(f"reinforce+{text}+token-sum")(replace(batch, advantage=None))
    return update.coefficients[..., 0].flatten().tolist()


@pytest.fixture
def group(make_rows: Make) -> Batch:
    reward = torch.tensor([REWARDS], dtype=torch.float64)
    return make_rows([[0.0]] * 5, [0.0] * 5, reward=reward)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raw", REWARDS),
        ("group-mean", [0.4, -0.6, -0.6, 0.4, 0.4]),
        ("grpo", [x / math.sqrt(0.24) for x in (0.4, -0.6, -0.6, 0.4, 0.4)]),
        ("grpo(std=sample,eps=1e-6)", [x / (math.sqrt(0.3) + 1e-6) for x in (0.4, -0.6, -0.6, 0.4, 0.4)]),
        ("rloo", [0.5, -0.75, -0.75, 0.5, 0.5]),
        ("batch-std(eps=0)", [x / math.sqrt(0.3) for x in (0.4, -0.6, -0.6, 0.4, 0.4)]),
        ("maxrl", [2 / 3, -1, -1, 2 / 3, 2 / 3]),
        ("gpg", [x * 5 / 3 for x in (0.4, -0.6, -0.6, 0.4, 0.4)]),
        ("asymre(delta=-0.2)", [0.6, -0.4, -0.4, 0.6, 0.6]),
        ("opo", [0.4, -0.6, -0.6, 0.4, 0.4]),
        ("passk", [0.0] * 5),
        ("opob(std=off)", [0.4, -0.6, -0.6, 0.4, 0.4]),
    ],
)
def test_baselines(group: Batch, text: str, expected: list[float]) -> None:
    assert advantages(text, group) == pytest.approx(expected)


def test_groups_of_one_give_zero_or_the_raw_reward(make_rows: Make) -> None:
    single = make_rows([[0.0]], [0.0], reward=torch.ones(1, 1, dtype=torch.float64))
    for text in ("grpo", "group-mean", "rloo", "opo", "gpg", "maxrl", "passk", "opob"):
        assert advantages(text, single) == [0.0], text
    for text in ("grpo", "group-mean", "rloo", "opo", "gpg"):
        assert advantages(f"{text}(singleton=raw)", single) == [1.0], text


def test_opo_weighs_by_length_and_opob_by_weight_and_norm(make_rows: Make) -> None:
    batch = make_rows([[0.0, 0.0], [0.0, 0.0]], [0.0, 0.0], reward=torch.tensor([[1.0, 0.0]], dtype=torch.float64))
    batch.mask[0, 1, 1] = False
    assert advantages("opo", batch) == pytest.approx([1 / 3, -2 / 3])
    batch = replace(batch, score_norm_sq=torch.tensor([[3.0, 1.0]], dtype=torch.float64))
    assert advantages("opob(std=off)", batch) == pytest.approx([0.25, -0.75])
    assert advantages("opob(others=on,std=off)", batch) == pytest.approx([1.0, -1.0])
    assert advantages("opob(length=on,std=off)", batch) == pytest.approx([1 - 0.75 / 1.75, -0.75 / 1.75])
    batch = replace(batch, score_norm_sq=torch.zeros(1, 2, dtype=torch.float64))  # no weight: the mean reward
    assert advantages("opob(std=off)", batch) == advantages("opob(scope=batch,std=off)", batch) == [0.5, -0.5]


def test_passk_gives_the_lead_to_the_best(make_rows: Make) -> None:
    reward = torch.tensor([[0.2, 0.9, 0.5]], dtype=torch.float64)
    batch = make_rows([[0.0]] * 3, [0.0] * 3, reward=reward)
    expected = 0.4 / (float(reward.std()) + 1e-6)
    assert advantages("passk", batch) == pytest.approx([0.0, expected, 0.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("token-mean", [1 / 4, 1 / 4]),
        ("seq-mean-token-mean", [1 / 6, 1 / 2]),
        ("seq-mean-token-sum", [1 / 2, 1 / 2]),
        ("seq-mean-token-sum-norm", [1 / 6, 1 / 6]),
        ("seq-mean-token-sum-norm(horizon=10)", [1 / 20, 1 / 20]),
        ("token-sum", [1.0, 1.0]),
        ("token-sum(divisor=8)", [1 / 8, 1 / 8]),
        ("delta-ln(alpha=1,horizon=1)", [1 / 4, 3 / 4]),
        ("luspo-mean", [1 / 2, 1 / 2]),
        ("seq-mean-token-mean(over=tokens)", [1 / 12, 1 / 4]),
    ],
)
def test_aggregations(make_rows: Make, text: str, expected: list[float]) -> None:
    batch = make_rows([[0.0] * 3, [0.0] * 3], [1.0, 1.0])
    batch.mask[0, 1, 1:] = False
    update = parse_method(f"reinforce+{text}")(batch)
    assert update.coefficients[0, :, 0].tolist() == pytest.approx(expected)


def test_admissions(make_rows: Make) -> None:
    reward = torch.tensor([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    logs = torch.zeros(3, 2, 1, dtype=torch.float64)
    single = make_rows([[0.0], [0.0]], [0.0, 0.0])
    batch = Batch(
        logp=logs,
        behavior_logp=logs,
        mask=torch.ones(3, 2, 1, dtype=torch.bool),
        valid=torch.ones(3, 2, dtype=torch.bool),
        reward=reward,
        version=torch.tensor([[[0], [0]], [[9], [2]], [[9], [9]]]),
        now=9,
    )
    rows = {
        text: (parse_method(f"reinforce+raw+{text}")(replace(batch, reward=reward + 1)).coefficients != 0)[..., 0]
        for text in ("zero-variance", "goldilocks(high=1.75,low=1.25)", "max-lag(limit=6)")
    }
    assert rows["zero-variance"].tolist() == [[False, False], [True, True], [False, False]]
    assert rows["goldilocks(high=1.75,low=1.25)"].tolist() == [[False, False], [True, True], [False, False]]
    assert rows["max-lag(limit=6)"].tolist() == [[False, False], [True, False], [True, True]]
    nothing = parse_method("clip+zero-variance+ess")(replace(single, advantage=None))
    assert (nothing.coefficients == 0).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kl(beta=1,kind=k1)", -1.0),
        ("kl(beta=1,kind=k2)", -0.5),
        ("kl(beta=1,kind=k3)", -(1 - math.exp(-0.5))),
        ("kl(beta=1,kind=abs)", -1.0),
        ("kl(beta=1,kind=forward)", 1.0),
        ("kl(beta=2,kind=k2)", -1.0),
        ("kl(beta=1,clamp=0.4,kind=k2)", 0.0),
        ("kl(beta=1,kind=k2,limit=0.1)", 0.0),
        ("kl(beta=1,kind=k2,weight=held-behavior)", -0.5 * math.exp(0.5)),
        ("kl(beta=1,kind=k2,weight=behavior)", -math.exp(0.5) * (0.5 + 0.125)),
        ("kl(beta=1,kind=k2,weight=current)", -0.625),
        ("kl(beta=1,into=advantage,kind=k1)", -0.5),
        ("kl(beta=1,into=advantage,kind=k1,limit=0.2)", -0.2),
        ("kl(beta=1,into=advantage,kind=forward,limit=0.2)", 0.2),
        ("kl(beta=1,into=advantage,kind=k2,weight=behavior)", -0.125 * math.exp(0.5)),
        ("kl(beta=1,into=advantage,kind=k2,weight=held-behavior)", -0.125 * math.exp(0.5)),
        ("kl(beta=1,into=advantage,kind=k2,weight=current)", -0.125),
    ],
)
def test_kl_penalties(make_rows: Make, text: str, expected: float) -> None:
    update = parse_method(f"reinforce+{text}+token-sum")(make_rows([[0.5]], [0.0]))
    assert float(update.coefficients[0, 0, 0]) == pytest.approx(expected)


def test_kl_reads_the_policy_it_names(make_batch: Make) -> None:
    assert parse_method("clip+kl(anchor=reference)").needs == {"reference_logp"}
    assert parse_method("clip+kl(weight=proximal)").needs == {"proximal_logp"}
    assert parse_method("clip+kl").anchors == {"ratio": "behavior", "kl": "behavior"}
    batch = make_batch()
    differ = [parse_method(f"clip+kl(anchor={name})")(batch).coefficients for name in ("behavior", "reference")]
    assert not torch.allclose(*differ)


def test_the_entropy_bonus_goes_to_its_own_coefficients(make_rows: Make) -> None:
    batch = make_rows([[0.0, 0.0]], [1.0])
    batch.mask[0, 0, 1] = False
    update = parse_method("clip+entropy(beta=0.01)")(batch)
    assert update.entropy_coefficients is not None
    assert update.entropy_coefficients[0, 0].tolist() == pytest.approx([0.01, 0.0])
    assert parse_method("clip")(batch).entropy_coefficients is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("opsm(delta=0.4)", [True, True, False, True]),
        ("vaco(delta=0.3)", [False, True, False, True]),
        ("positive-only", [True, True, False, False]),
        ("veto(high=1.6)", [False, True, True, True]),
        ("probability-band(low=-0.1,high=0.05)", [False, True, True, True]),
    ],
)
def test_masks(make_rows: Make, text: str, kept: list[bool]) -> None:
    batch = make_rows([[0.5], [-0.5], [-0.5], [0.05]], [1.0, 1.0, -1.0, -1.0])
    batch = replace(batch, logp=torch.full_like(batch.logp, -3.0), behavior_logp=batch.behavior_logp - 2.0)
    if text.startswith("probability"):
        batch = replace(batch, logp=batch.logp + 2.0, behavior_logp=batch.behavior_logp + 2.0)
        kept = [abs(math.exp(-1) - math.exp(-1 - x)) < (0.05 if x > 0 else 10) for x in (0.5, -0.5, -0.5, 0.05)]
        kept = [kept[0], math.exp(-1) - math.exp(-0.5) >= -0.1, math.exp(-1) - math.exp(-0.5) >= -0.1, kept[3]]
    update = parse_method(f"reinforce+{text}")(batch)
    assert (update.coefficients[0, :, 0] != 0).tolist() == kept
    assert float(update.metrics["share_masked"]) == pytest.approx(1 - sum(kept) / 4)


def test_stapo_needs_all_three_signs(make_rows: Make) -> None:
    batch = make_rows([[0.0]] * 4, [1.0, 1.0, 1.0, -1.0])
    logp = torch.tensor([-8.0, -8.0, -1.0, -8.0], dtype=torch.float64).reshape(1, 4, 1)
    entropy = torch.tensor([0.1, 2.0, 0.1, 0.1], dtype=torch.float64).reshape(1, 4, 1)
    batch = replace(batch, logp=logp, behavior_logp=logp, entropy=entropy)
    kept = parse_method("stapo")(batch).coefficients[0, :, 0] != 0
    assert kept.tolist() == [False, True, True, True]


def test_weights_added_with_plus_multiply(make_rows: Make) -> None:
    batch = make_rows([[0.1], [0.1]], [1.0, -1.0], proximal_logp=torch.full((1, 2, 1), -1.3, dtype=torch.float64))
    clip = parse_method("clip(anchor=proximal,high=1,low=1)")(batch).coefficients
    both = parse_method("clip(anchor=proximal,high=1,low=1)+token-tis(of=proximal)")(batch).coefficients
    rho = math.exp(-1.3 - (-1.1))
    assert torch.allclose(both, clip * rho)


def test_metrics_say_how_much_was_clipped_and_what_the_weights_are_worth(make_rows: Make) -> None:
    batch = make_rows([[1.0], [0.0]], [1.0, 1.0])
    metrics = parse_method("clip")(batch).metrics
    assert float(metrics["share_clipped"]) == 0.5
    assert float(metrics["ess_ratio"]) == pytest.approx((1 + math.e) ** 2 / (1 + math.e**2) / 2)
    assert float(metrics["ess_ratio_used"]) == 0.5
    assert math.isnan(float(parse_method("reinforce")(batch).metrics["ess_ratio_used"]))


@pytest.mark.parametrize(("share", "kept"), [(0.75, [0, 1, 2]), (0.5, [0, 1]), (0.1, [0]), (1.0, [0, 1, 2, 3])])
def test_freshest_leaves_out_the_stalest_rows(make_rows: Make, share: float, kept: list[int]) -> None:
    version = torch.tensor([[[8], [6], [5], [1]]])
    batch = make_rows([[0.0]] * 4, [1.0] * 4, version=version, now=9)
    found = parse_method(f"reinforce+freshest(share={share})")(batch).coefficients
    assert found[0, :, 0].nonzero().flatten().tolist() == kept
    alike = parse_method("reinforce+freshest(share=0.25)")(replace(batch, version=torch.zeros_like(version)))
    assert (alike.coefficients != 0).all()


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_the_ess_does_not_depend_on_the_size_of_the_weights(size: float) -> None:
    weight = size * torch.tensor([[1.0, 1.0, 2.0, 0.0]], dtype=torch.float64)
    assert float(ess_ratio(weight, torch.ones(1, 4, dtype=torch.bool))) == pytest.approx(16 / (6 * 4))


@pytest.mark.parametrize(("level", "expected"), [(0.05, 1.0), (0.5, 2.0), (0.51, 3.0), (0.95, 4.0), (1.0, 4.0)])
def test_a_quantile_reaches_the_largest_value(level: float, expected: float) -> None:
    value = torch.tensor([[3.0, 1.0, 4.0, 2.0]] * 3, dtype=torch.float64)
    found = _weighted_quantile(torch.zeros_like(value), value, level)
    assert found.tolist() == [expected] * 3


def test_rows_that_are_not_in_play_have_no_advantage_and_no_drift(make_rows: Make) -> None:
    valid = torch.tensor([[True, True, False, True]])
    reward = torch.tensor([[1.0, 0.0, 1.0, 1.0]], dtype=torch.float64)
    batch = make_rows([[0.0]] * 4, [1.0] * 4, valid=valid, reward=reward)
    batch.mask[0, 3] = False
    ev = parse_method("reinforce").evidence(batch)
    assert float(Opob().advantage(ev)[0, 2]) == 0.0
    moved = torch.tensor([[1.0, 3.0, 50.0, 70.0]], dtype=torch.float64)
    assert float(over_rows(ev, moved, "max")) == 3.0
    assert float(over_rows(ev, moved, "mean")) == 2.0


@pytest.mark.parametrize("rows", ["freshest", "max-lag"])
def test_parts_that_judge_rows_act_before_those_that_judge_groups(rows: str) -> None:
    for text in (f"clip+goldilocks+{rows}", f"sampo+{rows}"):
        admissions = parse_method(text).parts.admissions
        assert len(admissions) > 1
        assert admissions[0].name == rows


@pytest.mark.parametrize("count", [1, 5, 1000, 70_000])
@pytest.mark.parametrize("budget", [0.0, 0.01, 0.3, 0.9, 5.0])
def test_the_largest_prefix_with_a_small_mean(count: int, budget: float) -> None:
    generator = torch.Generator().manual_seed(count)
    value = torch.randn(count, generator=generator, dtype=torch.float64) ** 2
    ordered, place = first_crossing(value, lambda _, number, total: total > budget * number)
    means = value.sort().values.cumsum(0) / torch.arange(1, count + 1)
    kept = int((means <= budget).sum())
    expected = value.sort().values[kept - 1] if kept else None
    assert (expected is None) == (place == 0)
    if expected is not None:
        assert float(ordered[place - 1]) == pytest.approx(
            float(expected), rel=1e-12
        )  # sums of some thousand numbers, in two orders


def test_ties_and_constants_do_not_confuse_it() -> None:
    value = torch.cat([torch.full((40_000,), 2.0), torch.full((40_000,), 1.0)]).double()
    ordered, place = first_crossing(value, lambda _, number, total: total > 1.25 * number)
    assert float(ordered[place - 1]) == 2.0
    ordered, place = first_crossing(value, lambda _, number, total: total > 1.0 * number)
    assert float(ordered[place - 1]) == 1.0

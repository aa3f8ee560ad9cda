"""Regimes on paper: expressions, golden plans, conservation, and the laws of random lag. No model is trained here."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.bench.regimes import CellShape, build_schedule, check_method, parse_regime, regime_names
from vcpo_bench.bench.regimes.base import StalenessSchedule
from vcpo_bench.bench.regimes.plan import draw, plan, summary
from vcpo_bench.bench.regimes.random_lag import lag_probabilities
from vcpo_bench.bench.regimes.simulation import describe
from vcpo_bench.errors import UsageError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "plans.json").read_text())
SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)
REGIMES = [
    "fifo",
    "fifo(fill=hold)",
    "minibatch",
    "minibatch(epochs=2)",
    "random",
    "random(geometric,unit=trajectory)",
    "random(two-point)",
    "random(trace=[0 5 2])",
    "inflight",
    "inflight(every=6)",
    "replay",
]


def schedule(regime: str, staleness: int, shape: CellShape = SHAPE) -> StalenessSchedule:
    return build_schedule(parse_regime(regime), staleness, shape)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['regime']} {case['staleness']}")
def test_plan_is_the_golden_one(case: dict) -> None:
    found = plan(schedule(case["regime"], case["staleness"]), len(case["plan"]))
    for each, golden in zip(found, case["plan"], strict=True):
        assert {str(v): n for v, n in each.oldest.items()} == golden["oldest"]
        assert {str(v): n for v, n in each.newest.items()} == golden["newest"]
        assert each.held == golden["held"]


def accepted(regime: str, k: int) -> bool:
    """Whether a regime takes this lag; that the others are refused is tested below."""
    return not (("trace" in regime and k < 5) or ("epochs" in regime and k % 2 == 0 and k))


@pytest.mark.parametrize(("regime", "k"), [(r, k) for k in (0, 1, 5, 17) for r in REGIMES if accepted(r, k)])
def test_lag_is_bounded_reached_and_the_capacity_kept(regime: str, k: int) -> None:
    subject = schedule(regime, k)
    planned = list(plan(subject, 120))
    assert max(max(each.lags) for each in planned) == (5 if "trace" in regime else k)
    assert min(min(each.lags) for each in planned) >= 0
    most = max(each.held for each in planned)
    assert most <= subject.capacity if "random" in regime else most == subject.capacity
    for each in planned:
        assert each.lags.total() == 8
        assert subject.updates(120) == 120 + (k if "hold" in regime else 0)


@pytest.mark.parametrize("regime", REGIMES)
def test_every_token_sampled_is_trained_as_often_as_the_regime_says_or_still_held(regime: str) -> None:
    """Conservation: sampled = trained + held, trajectory by trajectory."""
    subject = schedule(regime, 5)
    sampled: Counter[tuple[int, int]] = Counter()
    trained: Counter[tuple[int, int]] = Counter()
    held: set[int] = set()
    updates = 60
    for update in range(updates):
        for order in subject.admit(update):
            rows = range(subject.groups(order.batch) * 2) if order.rows is None else order.rows
            if order.start == 0:
                sampled.update((order.batch, row) for row in rows)
                held.add(order.batch)
        for take in subject.select(update):
            groups = range(subject.groups(take.batch)) if take.groups is None else take.groups
            assert take.batch in held
            trained.update((take.batch, group * 2 + i) for group in groups for i in range(2))
        held -= set(subject.evict(update))
        assert subject.abort(update) == []
    assert set(sampled.values()) == {1}
    times = 2 if "epochs" in regime else 1
    for trajectory in sampled:
        if trajectory[0] not in held and regime != "replay":
            assert trained[trajectory] == times
        elif regime == "replay":
            assert trained[trajectory] >= 1
        else:
            assert trained[trajectory] <= times
    assert trained.total() == updates * 8


def test_fifo_is_a_point_mass_minibatch_a_sawtooth_inflight_a_span() -> None:
    fifo = list(plan(schedule("fifo", 7), 30))
    assert [dict(each.lags) for each in fifo] == [{min(t, 7): 8} for t in range(30)]
    assert [each.filling for each in fifo] == [t < 7 for t in range(30)]
    assert [dict(each.lags) for each in plan(schedule("minibatch", 7), 30)] == [{t % 8: 8} for t in range(30)]
    inflight = list(plan(schedule("inflight", 3), 30))[3:]
    assert all(dict(each.lags) == {3: 8} and dict(each.newest) == {each.update: 8} for each in inflight)
    waited = list(plan(schedule("inflight(every=6)", 3), 30))[3:]
    assert all(dict(each.newest) == {each.update - 2: 8} for each in waited)  # done after one change, then in the queue


def test_publishing_rarely_adds_its_own_sawtooth() -> None:
    lags = [max(each.lags) for each in plan(schedule("fifo(publish_every=3)", 2), 20)]
    assert lags[2:] == [2 + (t - 2) % 3 for t in range(2, 20)]


def test_minibatch_groups_are_shuffled_within_their_rollout() -> None:
    subject = schedule("minibatch(epochs=2)", 5)
    epochs = [[tuple(t) for u in range(e * 3, e * 3 + 3) for t in subject.select(u)] for e in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == [(b, (g,)) for b in range(3) for g in range(4)]
    assert epochs[0] != epochs[1]
    assert subject.proximal(0) == [0, 1, 2]
    assert subject.proximal(1) == []


@pytest.mark.parametrize("law", ["uniform", "geometric", "poisson", "two-point"])
@pytest.mark.parametrize("unit", ["batch", "trajectory"])
def test_random_lags_follow_their_law(law: str, unit: str) -> None:
    shape = SHAPE._replace(prompts=1, responses=1) if unit == "batch" else SHAPE
    updates = 3000 if unit == "batch" else 400
    counts: Counter[int] = Counter()
    for each in plan(schedule(f"random({law},unit={unit})", 6, shape), updates):
        if each.update >= 6:
            counts += each.lags
    expected = lag_probabilities(law, 6, 0.0, 0.1)
    observed = np.array([counts[lag] for lag in range(7)]) / counts.total()
    assert expected.sum() == pytest.approx(1)
    assert np.abs(observed - expected).max() < 5 * np.sqrt(0.25 / counts.total())
    assert (observed[expected == 0] == 0).all()


def test_untruncated_means_are_those_asked_for() -> None:
    lags = np.arange(401)
    for law in ("geometric", "poisson"):
        assert (lag_probabilities(law, 400, 7.0, 0.0) * lags).sum() == pytest.approx(7, rel=1e-6)


def test_trace_files_are_read_and_become_part_of_the_expression(tmp_path: Path) -> None:
    file = tmp_path / "lags.txt"
    file.write_text("0, 2\n4 1\n")
    regime = parse_regime(f"random(trace={file})")
    assert regime.canonical == "random(law=trace,trace=[0 2 4 1])"
    assert parse_regime(regime.canonical) == regime
    lags = [max(each.lags) for each in plan(build_schedule(regime, 4, SHAPE), 12)]
    assert lags[4:] == [0, 2, 4, 1] * 2
    file.write_text("0 nonsense")
    with pytest.raises(UsageError, match="not legal"):
        parse_regime(f"random(trace={file})")


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        (" fifo ", "fifo"),
        ("fifo(ramp)", "fifo"),
        ("fifo(fill=hold)", "fifo(fill=hold)"),
        ("minibatch(2)", "minibatch(epochs=2)"),
        ("random(uniform)", "random"),
        ("random(two-point, share=0.20)", "random(law=two-point,share=0.2)"),
        ("inflight(cache=recompute,every=3)", "inflight(cache=recompute,every=3)"),
        ("fifo(engine_noise=0.050,publish_every=1)", "fifo(engine_noise=0.05)"),
        ("fifo(engine_noise=0)", "fifo"),
        ("replay(0.25)", "replay(fraction=0.25)"),
    ],
)
def test_one_spelling(typed: str, canonical: str) -> None:
    assert parse_regime(typed).canonical == canonical
    assert parse_regime(canonical).canonical == canonical


@pytest.mark.parametrize("name", regime_names())
def test_lag_zero_has_one_name(name: str) -> None:
    assert parse_regime(name).at(0).canonical == "fifo"
    assert parse_regime(f"{name}(engine_noise=bf16)").at(0).canonical == "fifo(engine_noise=bf16)"
    assert parse_regime(name).at(2).canonical == name


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("fiffo", "did you mean fifo"),
        ("fifo(", "not of the form"),
        ("fifo(fill=held)", "did you mean hold"),
        ("fifo(fil=hold)", "did you mean fill"),
        ("minibatch(epochs=0)", "epochs is a whole number, 1 or more"),
        ("random(gaussian)", "law is uniform"),
        ("random(trace)", "give the file"),
        ("random(trace=missing.txt)", "missing.txt"),
        ("random(share=1)", "to below 1"),
        ("replay(fraction=nan)", "fraction is a number"),
        ("fifo(engine_noise=fp4)", "engine_noise=fp4"),
        ("fifo(publish_every=1,publish_every=2)", "twice"),
    ],
)
def test_bad_regimes_are_one_clear_line(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_regime(typed)
    assert said in str(caught.value)
    assert "--regime" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("regime", "k", "said"),
    [
        ("minibatch(epochs=3)", 3, "does not divide 4"),
        ("inflight(every=2)", 3, "5 changes"),
        ("random(trace=[9])", 3, "give --staleness 9"),
    ],
)
def test_options_that_do_not_fit_the_lag_are_refused(regime: str, k: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        schedule(regime, k)


def test_a_proximal_policy_exists_only_where_a_rollout_feeds_several_updates() -> None:
    needs = frozenset({"proximal_logp"})
    check_method("x", needs, schedule("minibatch", 3))
    for subject in (schedule("minibatch", 0), schedule("fifo", 3), schedule("random", 3)):
        with pytest.raises(UsageError, match="proximal"):
            check_method("x", needs, subject)
        check_method("x", frozenset(), subject)


def test_summary_and_drawing() -> None:
    saw = list(plan(schedule("minibatch", 3), 16))
    assert summary(saw) == summary(saw[:13]) == {"max": 3, "mean": 1.5, "period": 4}
    fifo = list(plan(schedule("fifo", 3), 16))
    assert summary(fifo) == {"max": 3, "mean": 3.0, "period": 1}
    assert summary(list(plan(schedule("random", 6), 40)))["period"] == 0
    assert describe("minibatch", 3, 9, seed=0).endswith("lag max 3, mean 1.5, period 4 updates")
    assert describe("random", 3, 9, seed=0).endswith("period none")
    lines = draw(fifo).splitlines()
    assert lines[1].split() == ["0", "0", "#", "(filling)"]
    assert lines[-1] == "    15       12     #"
    assert "5" in draw(list(plan(schedule("replay", 3), 16))).splitlines()[-1]
    assert max(map(len, draw(list(plan(schedule("fifo", 500), 600))).splitlines())) < 120

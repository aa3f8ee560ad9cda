"""What every regime plans: golden plans, bounds, conservation, drawings. No model is trained here."""

import json
import math
from collections import Counter
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from vcpo_bench.bench.regimes import REGIMES, CellShape, service_times
from vcpo_bench.bench.regimes.base import StalenessSchedule
from vcpo_bench.bench.regimes.plan import PlannedUpdate, draw, plan, summary
from vcpo_bench.bench.regimes.service_times import ServiceTimes
from vcpo_bench.bench.regimes.simulation import describe
from vcpo_bench.errors import UsageError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "plans.json").read_text())
SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)
EXPRESSIONS = [
    "fifo", "fifo(fill=hold)", "minibatch", "minibatch(epochs=2)", "random", "random(geometric,unit=trajectory)",
    "random(two-point)", "random(trace=[0 5 2])", "inflight", "inflight(every=6)", "replay",
]  # fmt: skip


def schedule(regime: str, staleness: int, shape: CellShape = SHAPE) -> StalenessSchedule:
    return REGIMES.parse(regime).schedule(staleness, shape)


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


@pytest.mark.parametrize(("regime", "k"), [(r, k) for k in (0, 1, 5, 17) for r in EXPRESSIONS if accepted(r, k)])
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


@pytest.mark.parametrize("regime", EXPRESSIONS)
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


@pytest.mark.parametrize(("staleness", "epochs"), [(1, 1), (1, 2), (2, 3), (3, 1)])
def test_a_minibatch_rollout_feeds_several_updates_and_is_trained_on_once_per_epoch(
    staleness: int, epochs: int
) -> None:
    planned = schedule(f"minibatch(epochs={epochs})", staleness)
    assert planned.several_updates
    assert planned.proximal(0) == [order.batch for order in planned.admit(0)]
    assert planned.trains_once == (epochs == 1)


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


@pytest.mark.parametrize(("count", "mark"), [(0, " "), (1, "."), (2, "."), (3, "1"), (11, "5"), (20, "9"), (21, "#")])
def test_a_digit_is_tenths_of_the_trajectories(count: int, mark: str) -> None:
    versions = Counter({8: count, 7: 21 - count})
    line = draw([PlannedUpdate(9, versions, versions, 2, False)]).splitlines()[1]
    assert line.ljust(24)[18] == mark


@pytest.mark.parametrize("draw", [0.0, 2.0**-53, 0.5])
def test_the_service_time_of_the_smallest_draw(monkeypatch: pytest.MonkeyPatch, draw: float) -> None:
    """Draws are multiples of 2^-53; zero, which has no normal quantile, counts as half of the smallest."""
    monkeypatch.setattr(service_times, "uniforms", lambda *_: np.full((1, 1), draw))
    quantile = NormalDist().inv_cdf(draw or 2.0**-54)
    found = ServiceTimes(3.0, 1.0, spread=0.5).group(SHAPE, 0, 6)
    assert found == pytest.approx(3.0 / 2 * math.exp(0.5 * quantile - 0.125), rel=1e-12)

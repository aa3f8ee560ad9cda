import numpy as np
import pytest

from vcpo_bench.analysis.collapse import rule
from vcpo_bench.analysis.collapse.rule import KINDS, CollapseRule, events, judge, sensitivity
from vcpo_bench.analysis.results import load

STEPS = np.arange(0, 410, 10)
RISE = 0.33 + 0.4 * (1 - np.exp(-STEPS / 80))


def after(step: int, values: np.ndarray | float, until: int = 1000) -> np.ndarray:
    return np.where((step <= STEPS) & (until > STEPS), values, RISE)


def noisy(curve: np.ndarray, seed: int) -> np.ndarray:
    return np.clip(curve + np.random.default_rng(seed).normal(0, 0.02, curve.size), 0, 1)


CURVES = {
    "keeps learning": (RISE, "healthy"),
    "cliff": (after(200, 0.0), "collapse"),
    "slow slide": (np.where(STEPS < 150, RISE, np.maximum(0.7 - (STEPS - 150) * 0.004, 0.0)), "collapse"),
    "falls to a low plateau": (after(200, 0.2), "collapse"),
    "to 1% and back to 65%": (after(200, 0.007, until=320) * np.where(STEPS < 320, 1, 0.65), "collapse with rebound"),
    "falls twice, ends up": (np.where((STEPS // 60) % 3 == 2, 0.02, RISE), "collapse with rebound"),
    "single bad evaluation": (after(200, 0.1, until=210), "transient dip"),
    "two bad evaluations": (after(200, 0.1, until=220), "transient dip"),
    "sags, not by half": (after(200, 0.45), "healthy"),
    "never learns": (np.full(41, 0.33), "stall"),
    "learns a little and loses it": (np.where(STEPS < 200, 0.3 + RISE / 2, 0.45), "stall"),
    "never right": (np.full(41, 0.01), "not applicable"),
    "low start, learns": (np.linspace(0.0, 0.6, 41), "healthy"),
    "low start, learns, falls": (np.where(STEPS < 200, np.linspace(0, 0.6, 41), 0.0), "collapse"),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("seed", range(3))
def test_curves_of_every_kind(name, seed):
    curve, kind = CURVES[name]
    assert judge(STEPS, noisy(curve, seed) if curve.max() > 0.05 else curve).kind == kind


def test_every_kind_has_a_curve():
    assert {kind for _, kind in CURVES.values()} | {"nan", "stopped"} == set(KINDS)


def test_onset_depth_and_recovery_of_the_published_shape():
    event = judge(STEPS, CURVES["to 1% and back to 65%"][0])
    assert event.onset == 200
    assert event.lowest == pytest.approx(0.01, abs=0.002)
    assert event.final == pytest.approx(0.65, abs=0.05)
    assert event.falls == 1


def test_the_slow_slide_begins_where_half_is_lost():
    reward = CURVES["slow slide"][0]
    event = judge(STEPS, reward)
    assert event.onset == STEPS[np.flatnonzero(reward < 0.5 * np.maximum.accumulate(reward))[0]]


def test_falls_are_counted():
    assert judge(STEPS, CURVES["falls twice, ends up"][0]).falls == 2
    assert judge(STEPS, after(200, 0.0, until=230)).falls == 1  # exactly as long as patience asks


def test_lowest_is_counted_after_the_onset_and_against_the_best_before():
    reward = np.where(STEPS < 200, np.linspace(0.05, 0.85, 41), 0.1)
    reward[-4:] = 0.9
    assert judge(STEPS, reward).lowest == pytest.approx(0.1 / reward[:20].max())


def test_nothing_is_half_of_a_reward_below_zero():
    signed = np.where(STEPS < 200, -0.4 - 0.12 * (STEPS % 20 > 0), 0.5)
    assert judge(STEPS, signed).kind == "healthy"
    assert judge(STEPS, np.where(STEPS < 300, signed, -0.4)).onset == 300


def test_a_fall_too_young_to_call_is_unresolved():
    reward = np.where(STEPS > 380, 0.0, RISE)  # the last two evaluations
    event = judge(STEPS, reward)
    assert (event.kind, event.unresolved) == ("healthy", True)
    assert judge(STEPS, np.where(STEPS > 370, 0.0, RISE)).kind == "collapse"


def test_nan_is_its_own_event_unless_the_fall_came_first():
    assert judge(STEPS, RISE, "nan").kind == "nan"
    assert judge(STEPS, RISE, "nan").onset == 400
    fell = judge(STEPS, after(200, 0.0), "nan")
    assert (fell.kind, fell.onset, fell.ended_nan) == ("collapse", 200, True)


def test_a_run_that_an_alarm_stopped_is_undecided_unless_it_had_fallen():
    short = slice(0, 21)
    assert judge(STEPS[short], RISE[short], "stopped_by").kind == "stopped"
    assert judge(STEPS[:2], RISE[:2], "stopped_by").kind == "stopped"  # too short to judge, not too short to count
    fell = judge(STEPS, after(200, 0.0), "stopped_by")
    assert (fell.kind, fell.onset) == ("collapse", 200)
    begun = judge(STEPS[:22], after(200, 0.0)[:22], "stopped_by")
    assert (begun.kind, begun.unresolved) == ("stopped", True)


def test_errors_and_short_runs_are_not_applicable():
    assert judge(STEPS, after(200, 0.0), "error").kind == "not applicable"
    assert judge([0, 10, 20], [0.5, 0.0, 0.0]).kind == "not applicable"
    assert judge([], []).kind == "not applicable"
    assert judge([0], [0.3], "nan").kind == "nan"


def test_evaluations_that_are_not_finite_are_left_out():
    reward = after(200, 0.0)
    reward[5] = np.nan
    assert judge(STEPS, reward).onset == 200


def test_events_of_a_folder(tmp_path, make_results):
    shapes = {"vcpo": "healthy", "tis": "collapsed", "clip": "rebound", "gspo": "stall", "mis": "nan", "vespo": "error"}
    results = load(make_results(tmp_path, methods=tuple(shapes), lags=(16,), steps=400, shapes=shapes, controls=False))
    table = events(results).set_index("method")
    found = {method: set(rows["event"]) for method, rows in table.groupby(level=0)}
    assert found == {
        "vcpo": {"healthy"},
        "tis": {"collapse"},
        "clip": {"collapse with rebound"},
        "gspo": {"stall"},
        "mis": {"nan"},
        "vespo": {"not applicable"},
    }
    assert table.loc["tis", "onset"].between(140, 170).all()
    assert table.loc["mis", "onset"].eq(200).all()  # the step it ended at
    assert table["collapsed"].sum() == 9


def test_sensitivity_moves_as_it_must(tmp_path, make_results):
    results = load(make_results(tmp_path, lags=(16,), steps=400))
    table = sensitivity(results)
    default = table[(table["depth"] == 0.5) & (table["patience"] == 3) & (table["min_drop"] == 0.1)].iloc[0]
    assert (default["agreement"], default["onset_shift"]) == (1.0, 0.0)
    assert len(table) == 27
    assert sorted(set(table["depth"])) == [0.3, 0.5, 0.7]  # shares of the best reward
    by_patience = table.groupby("patience")["collapsed"].sum()
    assert by_patience.is_monotonic_decreasing
    deep = judge(STEPS, after(200, 0.2), rule=CollapseRule(depth=0.9))
    assert deep.kind == "stall"


def test_sensitivity_judges_runs_that_are_never_down_by_no_rule(tmp_path, make_results, monkeypatch):
    results = load(make_results(tmp_path, lags=(1, 16), steps=400, shapes=lambda *_: "healthy"))
    first = results.evals["key"] == results.cells["key"][0]
    results.evals.loc[first, "sampled_reward"] = after(200, 0.2)
    results.cells.loc[1, "status"] = "nan"
    judged = []

    def counted(*arguments):
        judged.append(arguments)
        return judge(*arguments)

    monkeypatch.setattr(rule, "judge", counted)
    table = sensitivity(results)
    assert len(judged) == (1 + 27) * 2
    for row in table.itertuples():
        varied = CollapseRule(depth=row.depth, patience=row.patience, min_drop=row.min_drop)
        every, base = events(results, varied), events(results)
        assert row.collapsed == every["collapsed"].sum()
        assert row.agreement == (every["collapsed"] == base["collapsed"]).mean()


@pytest.mark.parametrize(
    ("before", "after", "rule", "kind"),
    [
        (0.15, 0.05, CollapseRule(), "collapse"),  # a drop of exactly min_drop: 0.15 - 0.05 is 0.09999999999999999
        (1.0, 0.3, CollapseRule(depth=0.7), "stall"),  # not below 0.3 of the best: 1 - 0.7 is 0.30000000000000004
        (0.1, 0.15, CollapseRule(), "healthy"),  # gains exactly min_gain: 0.1 + 0.05 is 0.15000000000000002
    ],
)
def test_a_reward_on_the_threshold_is_judged_as_written_not_as_rounded(before, after, rule, kind):
    reward = np.r_[np.full(4, before), np.full(4, after)]
    assert judge(np.arange(8), reward, rule=rule).kind == kind

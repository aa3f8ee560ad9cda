"""Step rules: effective sample size, lag, alignment of gradients, and the two controls."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vcpo_bench.methods import Batch, Method, MethodError, MissingEvidence, parse_method
from vcpo_bench.methods.core.ess import ess_ratio, ess_ratio_of_logs

Make = Callable[..., Batch]


def scale(text: str, batch: Batch) -> float:
    return float(parse_method(text)(batch).step_scale)


def test_ess_of_known_weights() -> None:
    weights = torch.tensor([[1.0, 1.0], [2.0, 0.0]], dtype=torch.float64)
    rows = torch.ones(2, 2, dtype=torch.bool)
    assert float(ess_ratio(weights, rows)) == pytest.approx(16 / 6 / 4)
    assert float(ess_ratio_of_logs(weights.log(), rows)) == pytest.approx(16 / 6 / 4)
    assert float(ess_ratio(weights * 0, rows)) == 0.0


def test_ess_counts_valid_rows_only() -> None:
    logs = torch.tensor([[0.0, 50.0]], dtype=torch.float64)
    assert float(ess_ratio_of_logs(logs, torch.tensor([[True, False]]))) == 1.0


@pytest.mark.parametrize(("text", "power"), [("clip+ess", 0.5), ("clip+ess(rule=linear)", 1.0), ("vcpo", 0.5)])
def test_the_step_follows_the_raw_sequence_weights(make_rows: Make, text: str, power: float) -> None:
    batch = make_rows([[math.log(3.0), math.log(10.0)], [0.0, 0.0]], [1.0, -1.0])  # 30 and 1: beyond every cap
    ratio = 31.0**2 / (901 * 2)
    assert scale(text, batch) == pytest.approx(ratio**power)


def test_base_floor_and_cap(make_rows: Make) -> None:
    batch = make_rows([[math.log(30.0)], [0.0]], [1.0, -1.0])
    ratio = 31.0**2 / (901 * 2)
    assert scale("clip+ess(base=0.55)", batch) == pytest.approx(min(1.0, ratio / 0.55) ** 0.5)
    assert scale("clip+ess(floor=0.9)", batch) == 0.9
    assert scale("clip+ess(cap=2,rule=linear)", batch) == pytest.approx(9 / 5 / 2)
    assert scale("clip+ess(base=0.1)", batch) == 1.0


def test_a_measured_base_comes_from_fresh_batches_and_is_state(make_rows: Make) -> None:
    method = parse_method("clip+ess(base=measured,rule=linear)")
    assert "state" in method.needs
    ratio = 31.0**2 / (901 * 2)
    fresh = make_rows([[math.log(30.0)], [0.0]], [1.0, -1.0], now=0)
    first = method(fresh)
    assert float(first.step_scale) == pytest.approx(1.0)
    assert float(first.state["ess.base"]) == pytest.approx(ratio)
    stale = make_rows([[math.log(300.0)], [0.0]], [1.0, -1.0], now=3).with_state(first.state)
    second = method(stale)
    assert float(second.state["ess.base"]) == pytest.approx(ratio)
    assert float(second.step_scale) == pytest.approx(301**2 / (90001 * 2) / ratio)
    assert scale("clip+ess(base=measured,rule=linear)", replace(fresh, now=3)) == pytest.approx(ratio)


def test_the_halves_of_vcpo(make_rows: Make) -> None:
    batch = make_rows([[math.log(30.0)], [0.0]], [1.0, -1.0])
    assert scale("vcpo(ess=off)", batch) == 1.0
    assert scale("vcpo(baseline=group)", batch) < 1.0
    assert scale("vcpo(ess=linear)", batch) == pytest.approx(scale("vcpo", batch) ** 2)
    tis = parse_method("tis")(batch).coefficients
    assert torch.allclose(parse_method("vcpo(baseline=group,ess=off)")(batch).coefficients, tis)


@pytest.mark.parametrize(("text", "power"), [("inverse-lag", -1.0), ("inverse-sqrt-lag", -0.5)])
def test_lag_rules(make_rows: Make, text: str, power: float) -> None:
    version = torch.tensor([[[0, 5], [6, 6]]])
    batch = make_rows([[0.0, 0.0], [0.0, 0.0]], [1.0, -1.0], version=version, now=7)
    assert scale(text, batch) == pytest.approx((1 + 7) ** power)
    assert scale(f"{text}(of=mean)", batch) == pytest.approx((1 + (7 + 1) / 2) ** power)
    alone = replace(batch, mask=torch.tensor([[[True, True], [False, False]]]))  # a row without tokens has no lag
    assert scale(f"{text}(of=mean)", alone) == pytest.approx((1 + 7) ** power)
    empty = replace(batch, mask=torch.zeros_like(batch.mask))
    assert scale(text, empty) == 0.0


@pytest.mark.parametrize(
    ("dots", "expected"),
    [
        ((1.0, 0.02, 1.0), (1.0, 0.0)),
        ((1.0, -0.9, 1.0), (1.0, 0.0)),
        ((1.0, 0.2, 1.0), (1.0, -0.15)),
        ((4.0, 0.8, 4.0), (1.0, -0.15)),
        ((1.0, 0.5, 1.0), (0.0, 0.0)),
        ((1.0, 0.0, 0.0), (1.0, 0.0)),
        ((1.0, math.nan, 1.0), (0.0, 0.0)),
    ],
)
def test_gac_removes_the_repeated_part(dots: tuple[float, float, float], expected: tuple[float, float]) -> None:
    combine = parse_method("clip+gac").combine
    assert combine is not None
    assert combine(dots) == pytest.approx(expected)
    assert parse_method("clip").combine is None


def test_what_gac_leaves_has_the_lower_cosine() -> None:
    combine = parse_method("gac").combine
    assert combine is not None
    g, p = torch.tensor([0.2, 0.98], dtype=torch.float64), torch.tensor([1.0, 0.0], dtype=torch.float64)
    a, b = combine((float(g @ g), float(g @ p), float(p @ p)))
    assert float((a * g + b * p) @ p) == pytest.approx(
        0.05 / 0.2 * 0.2, rel=1e-3
    )  # g is written with two digits: its cosine is 0.19996


def run(method: Method, batch: Batch, steps: int) -> list[float]:
    scales, state = [], dict(batch.state)
    for _ in range(steps):
        update = method(batch.with_state(state))
        state = dict(update.state)
        scales.append(float(update.step_scale))
    return scales


def test_controls_borrow_the_scales_of_another_run(make_rows: Make) -> None:
    batch = make_rows([[0.0], [0.0]], [1.0, -1.0])
    matched, shuffled = parse_method("tis+lr-matched(to=clip+ess)"), parse_method("tis+lr-shuffled")
    assert (matched.needs_series, shuffled.needs_series, parse_method("tis").needs_series) == ("clip+ess", "vcpo", None)
    with pytest.raises(MissingEvidence, match="clip\\+ess"):
        matched(batch)
    series = [0.1, 0.2, 0.3, 0.8]
    assert run(matched.with_series(series, 0), batch, 3) == pytest.approx([0.35] * 3)
    order = run(shuffled.with_series(series, 1), batch, 4)
    assert sorted(order) == pytest.approx(series)
    assert order == run(shuffled.with_series(series, 1), batch, 4)
    assert any(run(shuffled.with_series(series, seed), batch, 4) != order for seed in range(2, 6))
    assert matched.with_series(series, 0).canonical == matched.canonical
    with pytest.raises(MethodError, match="borrows no"):
        parse_method("clip").with_series(series, 0)
    with pytest.raises(MissingEvidence, match="empty"):
        matched.with_series([], 0)

"""What people read: curves, drawings and descriptions."""

import math

import pytest

from vcpo_bench.adapters.locality import locality_of
from vcpo_bench.methods import (
    Curve,
    ParameterError,
    coefficient_curve,
    describe,
    draw_curve,
    geometry_of,
    method_names,
    parse_method,
)
from vcpo_bench.methods.core.reach import Scope


def test_clip_has_its_corners_where_the_paper_has_them() -> None:
    curve = coefficient_curve("clip(high=0.28,low=0.2)", points=601, span=1.0)
    for log_ratio, up, down in zip(curve.log_ratio, curve.positive, curve.negative, strict=True):
        ratio = math.exp(log_ratio)
        assert up == pytest.approx(ratio if ratio <= 1.28 else 0.0)
        assert down == pytest.approx(-ratio if ratio >= 0.8 else 0.0)


def test_vespo_peaks_where_its_formula_does() -> None:
    curve = coefficient_curve("vespo", points=601, span=1.0)
    best = max(range(601), key=curve.positive.__getitem__)
    assert math.exp(curve.log_ratio[best]) == pytest.approx(2 / 3, rel=0.01)  # w^2 e^(3(1-w)) peaks at k/lam


@pytest.mark.parametrize("name", method_names())
def test_every_method_has_a_finite_curve(name: str) -> None:
    curve = coefficient_curve(name, points=13)
    assert all(map(math.isfinite, [*curve.positive, *curve.negative]))


def test_a_drawing_shows_both_signs() -> None:
    lines = draw_curve(Curve([-1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [-1.0, -1.0, 0.0]), width=3, height=3)
    assert lines[0].endswith("|-*+")
    assert lines[2].startswith("   0.00 |+")
    assert all(len(line) < 100 for line in lines)


def test_an_unknown_name_offers_close_ones() -> None:
    with pytest.raises(ParameterError, match=r"did you mean .*vespo"):
        describe("vepso")


def test_parameters_are_described_as_they_are_written() -> None:
    facts = describe("vcpo")
    shown = {each.name: (each.default, each.legal) for each in facts.parameters}
    assert shown["ess"] == ("sqrt", "sqrt | linear | off")
    assert shown["cap"][0] == "8"
    assert facts.needs == ("score_norm_sq",)
    assert facts.expression == "vcpo"
    assert describe("opsm").expression == "clip+opsm"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("reinforce", "none"),
        ("token-tis", "weight on sampler-current, by token"),
        ("clip", "clip, weight on sampler-current, by token"),
        ("clip(anchor=proximal)", "clip, weight on anchor-current, by token"),
        ("decoupled", "clip, weight on sampler-anchor, anchor-current, by token"),
        ("icepop", "mask, weight on sampler-current, by token"),
        ("reinforce+kpop(of=proximal)", "mask on sampler-anchor, by token"),
        ("minpro", "clip, weight on sampler-current, by prefix"),
        ("gspo", "clip, weight on sampler-current, by sequence"),
        ("veto", "mask on sampler-current, by sequence"),
        ("gepo", "clip, weight on sampler-current, by group"),
        ("m2po", "clip, weight on sampler-current, by batch"),
        ("vcpo", "weight, step on sampler-current, by batch"),
        ("positive-only", "mask, weight on sampler-current, by token"),
        ("reinforce+kl(anchor=reference)", "pull on reference-current, by token"),
        ("reinforce+entropy", "entropy"),
        ("inverse-lag", "step on lag"),
        ("gap-aware", "step on weights"),
        ("dc-asgd", "gradient on weights"),
        ("clip+lr-matched", "clip, weight, step on sampler-current, by token"),
        ("sampo", "admission, clip, weight on sampler-current, by sequence"),
    ],
)
def test_what_is_measured_is_what_the_method_is(text: str, shown: str) -> None:
    assert str(geometry_of(text)) == shown


@pytest.mark.parametrize("name", method_names())
def test_no_method_decides_over_a_wider_set_than_the_locality_table_says(name: str) -> None:
    scopes = {"": 0, "token": 0, "prefix": 0, "sequence": 0, "group": Scope.GROUP, "batch": Scope.BATCH}
    assert scopes[geometry_of(name).level] <= locality_of(parse_method(name)).whole

"""One look per method, in color, in gray and for color-blind readers; and how numbers are written."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import colors

from vcpo_bench.methods import method_names
from vcpo_bench.reports.formatting import MINUS, MISSING, interval, number, rate, whole
from vcpo_bench.reports.plots.method_style import GRID, INK, OKABE_ITO, drawing, line_style
from vcpo_bench.reports.plots.prediction import PANELS

KNOWN = ["reinforce", "vcpo", "vespo", "gspo", "clip", "clip-higher", "tis", "token-tis", "mis"]


def test_the_methods_of_the_comparison_differ_in_look_and_without_color() -> None:
    looks = [line_style(name) for name in KNOWN]
    assert len(set(looks)) == len(KNOWN)
    assert len({(one.dash, one.marker) for one in looks}) == len(KNOWN), "gray print must tell them apart"


def test_looks_are_pinned() -> None:
    assert line_style("vcpo").color == "#0072B2"
    assert line_style("a-method-nobody-knows") == line_style("a-method-nobody-knows")
    assert line_style("a-method-nobody-knows").marker == "o"


def test_many_methods_share_no_look() -> None:
    names = ["aipo", "aspo", "band", "bandpo", "bapo", "cispo", "topr", "sapo", "dapo", "gmpo", "m2po", "tba", "luspo"]
    assert len({line_style(name) for name in names}) == len(names)
    assert len({line_style(name).color for name in names}) > 6


def test_no_two_methods_that_ship_share_a_look() -> None:
    names = method_names()
    assert len({line_style(name) for name in names}) == len(names)


def test_signals_of_the_prediction_figure_differ_in_color_and_without_it() -> None:
    signals = {name for _, names in PANELS for name in names}
    looks = [line_style(name) for name in signals]
    assert len({one.color for one in looks}) == len(signals)
    assert len({(one.dash, one.marker) for one in looks}) == len(signals)


def test_variants_keep_the_color_of_their_method() -> None:
    assert line_style("vcpo(cap=4)").color == line_style("vcpo").color
    assert line_style("clip-higher(high=0.3)").color == line_style("clip-higher").color
    assert line_style("vcpo(ess=off)") != line_style("vcpo")
    variants = ["vcpo", "vcpo(baseline=group)", "vcpo(ess=off)", "vcpo(ess=off)+lr-matched"]
    assert len({line_style(name).dash for name in variants}) == len(variants)
    assert all(line_style(f"vcpo(cap={cap})").dash != line_style("vcpo").dash for cap in range(9))


def test_lines_stand_out_from_white() -> None:
    def luminance(color: str) -> float:
        rgb = np.array(colors.to_rgb(color))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for color in (*OKABE_ITO.values(), INK):
        assert 1.05 / (luminance(color) + 0.05) > 2.0
    for first, second in itertools.combinations(OKABE_ITO.values(), 2):
        assert np.abs(np.subtract(colors.to_rgb(first), colors.to_rgb(second))).max() > 0.2


def test_drawing_changes_nothing_global() -> None:
    before = dict(mpl.rcParams)
    with drawing(9.0):
        assert mpl.rcParams["svg.hashsalt"] == "vcpo-bench"
        assert mpl.rcParams["font.size"] == 9.0
        assert mpl.rcParams["axes.edgecolor"] == INK
        assert mpl.rcParams["grid.color"] == GRID
    assert dict(mpl.rcParams) == before


def test_settings_of_the_user_do_not_leak_in() -> None:
    with mpl.rc_context({"lines.linewidth": 9.0, "text.usetex": True}), drawing():
        assert mpl.rcParams["lines.linewidth"] == 1.2
        assert not mpl.rcParams["text.usetex"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(3e-4, "3e-4"), (1e-6, "1e-6"), (2.5e-5, "2.5e-5"), (0.1, "0.1"), (1.0, "1"), (float("nan"), MISSING)],
)
def test_rate(value: float, text: str) -> None:
    assert rate(value) == text


def test_numbers_as_written() -> None:
    assert number(0.12345) == "0.123"
    assert number(-0.5, 1) == f"{MINUS}0.5"
    assert number(2e-7) == "2.00e-07"
    assert number(0.0) == "0.000"
    assert number(None) == number(float("nan")) == MISSING
    assert number(float("inf")) == "∞"
    assert interval(0.1, 0.234) == "[0.10, 0.23]"
    assert interval(float("nan"), 1.0) == ""
    assert [whole(value) for value in (3, 3.0, None, float("nan"))] == ["3", "3", MISSING, MISSING]

"""Making a drawing small and fit for a page must not change what it shows."""

from __future__ import annotations

import re

import numpy as np
import pytest

from vcpo_bench.reports.figure import Line, Plot, Sheet
from vcpo_bench.reports.plots.method_style import INK, MARKERS, LineStyle, drawing
from vcpo_bench.reports.plots.sheet import draw_line, draw_lines, panel_grid
from vcpo_bench.reports.writers import svg
from vcpo_bench.reports.writers.svg import _shorter, inline, swatch, to_svg


def points(data: str) -> list[tuple[float, float]]:
    """The absolute points of path data of M, L, l and z."""
    found: list[tuple[float, float]] = []
    for command, rest in re.findall(r"([MLl])([^MLlz]*)", data):
        numbers = [float(one) for one in re.findall(r"-?[\d.]+", rest)]
        for x, y in zip(numbers[::2], numbers[1::2], strict=True):
            found.append((found[-1][0] + x, found[-1][1] + y) if command == "l" else (x, y))
    return found


def test_long_paths_keep_every_point_within_a_twentieth() -> None:
    rng = np.random.default_rng(0)
    exact = rng.uniform(-50, 700, (300, 2))
    data = "".join(f"{'M' if i % 100 == 0 else 'L'} {x:.6f} {y:.6f} \n" for i, (x, y) in enumerate(exact)) + "z\n"
    short = _shorter(data)
    assert len(short) < 0.6 * len(data)
    np.testing.assert_allclose(points(short), exact, atol=0.0501)
    assert short.endswith("z")


def test_short_and_curved_paths_keep_two_digits() -> None:
    assert _shorter("M 0 1.754321 \nC 0.464100 1.75 0.91 1.565 z\n") == "M 0 1.75 C 0.46 1.75 0.91 1.56 z"


@pytest.fixture(scope="module")
def plot() -> Plot:
    with drawing():
        figure, (axes,) = panel_grid(Sheet(), 1, 1)
        lines = [Line(0, name, np.arange(9.0), np.arange(9.0) + i) for i, name in enumerate(("vcpo", "reinforce"))]
        for line in lines:
            draw_line(axes, line, ["vcpo", "reinforce"])
        return Plot("p", "t", "c", figure, ["vcpo", "reinforce"], lines)


def test_svg_has_no_metadata_and_the_same_bytes(plot: Plot) -> None:
    with drawing():
        first, second = to_svg(plot), to_svg(plot)
    assert first == second
    assert "metadata" not in first
    assert "<!--" not in first


def bands(count: int = 4, log: bool = False, together: bool = True) -> Plot:
    """Panels that share their axes, with lines and bands of very different extent."""
    names, random = ["vcpo", "reinforce"], np.random.default_rng(1)
    figure, axes = panel_grid(Sheet(), count, 2)
    lines = []
    for panel in range(count):
        for name in names:
            y = np.exp(random.normal(panel, 1.0, 30))
            lines.append(Line(panel, name, np.arange(30.0) * (panel + 1), y, y / 2, y * (3 + panel)))
    if together:
        draw_lines(axes, lines, names)
    else:
        for line in lines:
            draw_line(axes[line.panel], line, names)
    if log:
        axes[0].set_yscale("log")
    axes[0].set_ylabel("a label")
    axes[-1].set_xlabel("update")
    return Plot("p", "t", "c", figure, names, lines)


@pytest.mark.parametrize("log", [False, True])
def test_lines_drawn_together_are_those_drawn_one_by_one(log: bool) -> None:
    with drawing():
        assert to_svg(bands(log=log)) == to_svg(bands(log=log, together=False))


def test_panels_laid_out_beforehand_are_where_saving_puts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with drawing():
        found = to_svg(bands())
        monkeypatch.setattr(svg, "lay_out", lambda figure: None)
        assert found == to_svg(bands())


def test_two_inlined_drawings_share_no_id_and_follow_the_page(plot: Plot) -> None:
    with drawing():
        text = to_svg(plot)
    first, second = inline(text, "f1", 'a "quoted" <label>'), inline(text, "f2", "b")
    ids = [set(re.findall(r'\bid="([^"]*)"', one)) for one in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    assert set(re.findall(r'href="#([^"]*)"', first)) <= ids[0]
    assert INK not in first
    assert "currentColor" in first
    assert 'aria-label="a &#34;quoted&#34; &lt;label&gt;"' in first
    assert first.count('class="m0"') == first.count('class="m1"') == 1


def test_every_marker_has_a_swatch() -> None:
    shapes = {re.search(r'd="([^"]*)" stroke="none"', swatch(LineStyle(INK, "solid", marker))) for marker in MARKERS}
    assert len({shape.group(1) for shape in shapes if shape}) == len(MARKERS)
    assert "stroke-dasharray" in swatch(LineStyle("#000000", (0, (1.0, 2.0)), "o"))

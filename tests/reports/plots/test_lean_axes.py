"""Ticks that are copied, measured once and drawn together make the picture that matplotlib makes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from vcpo_bench.reports.plots.lean_axes import LeanAxes
from vcpo_bench.reports.plots.letters import ROMAN, spell
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.ticks import PlainTicks


def linear(axes: list[Axes]) -> None:
    for panel in axes:
        panel.plot([0, 1, 7], [3e-4, 2.5e-4, 9e-4])
    axes[0].set_title("first")
    axes[2].set(xlabel="update", ylabel="reward")


def logarithmic(axes: list[Axes]) -> None:
    for panel in axes:
        panel.plot([1, 10, 3000], [0.1, 5, 2])
    axes[0].set(xscale="log", yscale="log")
    axes[0].yaxis.set_major_locator(PlainTicks())


def named(axes: list[Axes]) -> None:
    axes[0].set_xticks([0, 1, 2], ["lag 1", "lag 16", "lag 128"])
    axes[3].xaxis.set_major_locator(FixedLocator([-9, 0.5, 1]))
    axes[3].tick_params(axis="y", labelsize=5, length=0)


def with_offset(axes: list[Axes]) -> None:
    axes[1].plot([1e9, 1e9 + 3], [1e7, 2e7])
    axes[1].tick_params(labelrotation=30)


def without_ticks(axes: list[Axes]) -> None:
    axes[0].set(xticks=[], yticks=[3])


def image(kind: type[Axes], draw: object, share: bool | str) -> bytes:
    """The pixels of four panels, drawn twice: the second time from what is remembered, at another size."""
    stream = io.BytesIO()
    with drawing():
        figure = Figure(figsize=(4, 3))
        axes = figure.subplots(2, 2, sharex=share, sharey=share, subplot_kw={"axes_class": kind})
        draw(list(axes.flat))
        for size in (3.0, 3.5):
            figure.set_figheight(size)
            figure.savefig(stream, format="rgba", dpi=90)
    return stream.getvalue()


@pytest.mark.parametrize("share", [False, True, "col"])
@pytest.mark.parametrize("draw", [linear, logarithmic, named, with_offset, without_ticks])
def test_the_picture_is_that_of_matplotlib_s_own_axes(draw: object, share: bool | str) -> None:
    found, expected = (np.frombuffer(image(kind, draw, share), np.uint8) for kind in (LeanAxes, Axes))
    np.testing.assert_array_equal(found, expected)
    assert found.std() > 0


def test_each_tick_label_has_letters_of_its_own() -> None:
    with drawing(letters=ROMAN):
        (panel,) = Figure().subplots(1, 1, squeeze=False, subplot_kw={"axes_class": LeanAxes}).flat
        panel.xaxis.set_major_locator(FixedLocator([0, 1, 2]))
        panel.xaxis.set_major_formatter(lambda place, _: ("a", "b_c", "d")[int(place)])
        spell(panel.figure, ROMAN)
        labels = panel.get_xticklabels()
    assert [label.get_text() for label in labels] == ["a", "b_c", "d"]
    assert [label.get_fontfamily()[0] for label in labels] == ["cmr10", "STIXGeneral", "cmr10"]

"""Every figure of a report: several ticks on every axis, something to see in every panel, and captions that say n."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axis import Axis
from matplotlib.ticker import FixedLocator

from vcpo_bench.analysis.results import load
from vcpo_bench.records import STEPS_FILE
from vcpo_bench.reports.document import Picture
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.catalog import FIGURES
from vcpo_bench.reports.plots.curves import QUANTITIES, trajectories
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.paper_figures import lag_sweep, results_stack
from vcpo_bench.reports.plots.ticks import LEAST
from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.venues import sheets

Make = Callable[..., Path]
COUNT = re.compile(r"\b\d+( to \d+)? (collapsed run|surviving run|seed|run)s?\b")
SURE = re.compile(
    r"95% [\w-]+|quartiles|smallest to largest seed|[Nn]o interval|without an interval|too few for a|here is no band"
)


def make(folder: Path, make_results: Make, seeds: tuple[int, ...]) -> Study:
    """Failures, halves of vcpo, trajectories, and on-policy runs whose KL is rounding noise, at first at lag 16 too."""
    shapes = {"reinforce": "collapsed", "tis": "collapsed"}
    methods = ("vcpo", "vcpo(ess=off)", "tis")
    grid = {"methods": methods, "lags": (1, 16), "seeds": seeds}
    make_results(folder, steps=60, shapes=shapes, record="full", sample_every=30, **grid)
    import pandas as pd

    for file in folder.glob(f"cells/*/{STEPS_FILE}"):
        steps = pd.read_parquet(file)
        steps["ess_ratio"] = 0.5 + steps["ess_ratio"] / 2
        on_policy = (steps["lag_max"] == 0) | (steps["step"] < 3)
        steps["kl_mu_theta_k3"] = steps["kl_mu_theta_k3"].mask(on_policy, 1e-15)
        steps["log_weight_max"] = steps["log_weight_max"].mask(on_policy, 1e-7)
        steps.to_parquet(file, index=False)
    return Study(load(folder))


def pictures_of(study: Study) -> list[Picture]:
    reported = [one for section in build(study).sections for one in section.blocks if isinstance(one, Picture)]
    published = [name for name in FIGURES if name.startswith(("vcpo-", "vespo-"))]
    return [*reported, *(Picture(name, partial(FIGURES[name].draw, study)) for name in published)]


def drawn(pictures: list[Picture], sheet: Sheet) -> list[Plot]:
    with drawing(sheet.font_size):
        plots = {one.name: one.draw(sheet) for one in pictures}
        found = [plot for plot in plots.values() if plot is not None]
        assert [plot.name for plot in found] == [name for name, plot in plots.items() if plot is not None]
        for plot in found:
            plot.figure.canvas.draw()
    return found


@pytest.fixture(scope="module")
def study(make_results: Make, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return make(tmp_path_factory.mktemp("figures") / "r", make_results, (0, 1))


@pytest.fixture(scope="module")
def figures(study: Study) -> list[Plot]:
    pictures = pictures_of(study)
    return [plot for sheet in (Sheet(), sheets("icml")[0], sheets("beamer")[0]) for plot in drawn(pictures, sheet)]


def test_all_kinds_of_figures_are_looked_at(figures: list[Plot]) -> None:
    wanted = {
        *(
            "score-lag",
            "profiles",
            "survival",
            "ess-vs-collapse",
            "ess-vs-collapse-runs",
            "realized-lag",
            "phases",
            "k-hat",
        ),
        *("reward-lag-chain", "ess-map-chain", "kl-steps-chain", "ess-steps-chain"),
        *("vcpo-results-stack", "vcpo-lag-sweep", "vcpo-fig9-ablation", "vespo-fig2-kernels"),
    }
    assert wanted <= {plot.name for plot in figures}


def ticks_in_view(axis: Axis) -> int:
    low, high = sorted(axis.get_view_interval())
    return int(sum(low <= tick <= high for tick in axis.get_majorticklocs()))


def test_every_numeric_axis_has_several_ticks(figures: list[Plot]) -> None:
    few = [
        (plot.name, axes.get_title(), axis.axis_name, axis.get_view_interval().tolist())
        for plot in figures
        for axes in plot.figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        if not isinstance(axis.get_major_locator(), FixedLocator) and len(axis.get_majorticklocs())
        if ticks_in_view(axis) < LEAST
    ]
    assert few == []


def seen(plot: Plot, panel: int) -> bool:
    """Whether a line, bar, image or text lies within the view of a panel."""
    axes = plot.figure.axes[panel]
    low, high = axes.get_ylim()
    own = [line for line in plot.lines if line.panel == panel]
    return bool(axes.images or axes.patches or axes.texts) or any(
        ((line.y >= low) & (line.y <= high)).any() for line in own
    )


def test_no_panel_is_empty(figures: list[Plot]) -> None:
    empty = [(plot.name, at) for plot in figures for at in range(len(plot.panels)) if not seen(plot, at)]
    assert empty == []


def test_rounding_noise_is_called_so_in_both_figures_of_kl(study: Study) -> None:
    quantity = next(one for one in QUANTITIES if one.name == "kl-steps")
    with drawing():
        curves = trajectories(study, Sheet(), quantity, "chain", "fifo")
        stack = results_stack(study, Sheet())
    assert curves is not None
    assert stack is not None
    texts = [[text.get_text() for text in axes.texts] for axes in curves.figure.axes]
    low = curves.figure.axes[0].get_ylim()[0]
    end = f"below {low:.0e}".replace("e-0", "e-")
    assert texts == [[end], [], []]
    assert f"Values {end} are not shown." in curves.caption
    below = stack.figure.axes[[label.partition(": ")[2] for label in stack.panels].index(quantity.label)]
    assert below.get_ylim()[0] > 1e-9
    assert not below.texts, "its lines leave the noise behind"
    assert "are not shown" in stack.caption


def test_rows_of_panels_share_the_label_of_their_axis(make_results: Make, tmp_path: Path) -> None:
    """On a slide the labels of two rows ran into each other."""
    root = make_results(tmp_path / "r", methods=("vcpo",), lags=(1, 4), seeds=(0,), steps=40, lrs=(1e-4, 3e-4))
    sheet = sheets("beamer")[1]
    with drawing(sheet.font_size):
        plot = trajectories(Study(load(root)), sheet, QUANTITIES[0], "chain", "fifo")
        assert plot is not None
        plot.figure.set_figheight(min(plot.figure.get_figheight(), sheet.most_height))
        plot.figure.canvas.draw()
        labels = [axes.yaxis.label for axes in plot.figure.axes if axes.get_ylabel()]
        labels += [text for text in plot.figure.texts if text.get_text() == QUANTITIES[0].label]
        (box,) = (label.get_window_extent() for label in labels)
    assert 0 <= box.y0 < box.y1 <= plot.figure.bbox.y1


def test_rounding_noise_of_weights_has_no_axis_of_its_own(study: Study) -> None:
    quantity = next(one for one in QUANTITIES if one.name == "log-weight-steps")
    with drawing():
        plot = trajectories(study, Sheet(), quantity, "chain", "fifo")
    assert plot is not None
    first, *others = plot.figure.axes
    assert first.get_ylim() == (0.0, 1.0)
    assert [text.get_text() for text in first.texts] == ["below 1e-5"]
    assert not any(axes.texts for axes in others)


def test_captions_say_how_many_and_how_sure(figures: list[Plot]) -> None:
    for plot in figures:
        if plot.name == "vespo-fig2-kernels":
            assert "in closed form, without any run" in plot.caption
            continue
        assert COUNT.search(plot.caption), plot.caption
        assert SURE.search(plot.caption), plot.caption


def test_captions_of_one_seed_promise_no_interval(make_results: Make, tmp_path: Path) -> None:
    single = make(tmp_path / "r", make_results, (0,))
    pooled = {"survival", "ess-vs-collapse"}  # of several runs, where there are any
    for plot in drawn(pictures_of(single), Sheet()):
        if plot.lines and plot.name not in pooled:
            assert not re.search("95%|quartiles|smallest to largest", plot.caption), plot.caption
            assert all(line.low is None for line in plot.lines), plot.name


def test_counts_are_those_of_the_runs(study: Study) -> None:
    with drawing():
        sweep = lag_sweep(study, Sheet())
    assert sweep is not None
    assert "Line: mean over 2 seeds; band: smallest to largest seed." in sweep.caption
    assert sweep.figure.axes[0].get_ylim()[0] == 0.0, "rewards start at 0, as in the other figures"
    assert len(sweep.figure.axes[0].collections) == len(sweep.lines) == 2, "a band per line"
    assert all(line.low is not None and np.all(line.low <= line.y) for line in sweep.lines)

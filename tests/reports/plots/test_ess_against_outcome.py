"""ESS before a failure against the outcome: a point per run, and ROC curves with intervals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.figure import Plot
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.roc import SIGNALS, roc
from vcpo_bench.reports.plots.runs_before_failure import runs_before_failure
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.venues import sheets

ICLR = sheets("iclr")[1]


def shape(method: str, lag: int, seed: int) -> str:
    return "collapsed" if lag == 16 and seed < {"tis": 3}.get(method, 1) else "healthy"


@pytest.fixture(scope="module")
def study(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("outcome") / "r"
    lrs = (1e-4, 2e-4, 4e-4, 8e-4)
    make_results(folder, ("tis", "clip"), (4, 16), (0, 1, 2, 3), lrs=lrs, shapes=shape, controls=False)
    return Study(load(folder))


@pytest.fixture(scope="module")
def points(study: Study) -> Plot:
    with drawing():
        plot = runs_before_failure(study, ICLR)
    assert plot is not None
    return plot


def test_every_run_is_a_point(study: Study, points: Plot) -> None:
    assert sum(line.x.size for line in points.lines) == len(study.cells)
    assert points.panels == ["lag 4", "lag 16"]
    assert "16 collapsed runs (filled) and 48 surviving runs (open)" in points.caption


def test_a_point_is_the_ess_before_the_failure_and_what_was_left_of_the_reward(study: Study, points: Plot) -> None:
    cells = study.cells[(study.cells["staleness"] == 16) & (study.cells["method"] == "tis")]
    line = next(line for line in points.lines if (line.panel, line.name) == (1, "tis"))
    wanted = []
    for cell in cells[cells["collapsed"]].itertuples():
        steps = study.steps[cell.key]
        before = (steps["step"] >= cell.onset - 25) & (steps["step"] < cell.onset - 20)
        wanted.append((steps["ess_ratio"][before].mean(), cell.final_reward / cell.best_reward))
    assert len(wanted) == 12
    found = np.column_stack([line.x, line.y])
    assert all(np.isclose(found, one).all(axis=1).any() for one in wanted)


def test_runs_that_failed_are_filled_and_the_others_open(points: Plot) -> None:
    artists = {line.get_gid(): line for axes in points.figure.axes for line in axes.get_lines() if line.get_gid()}
    clip = points.methods.index("clip")
    failed, survived = artists[f"m{clip}-collapsed-1"], artists[f"m{clip}-survived-1"]
    assert (len(failed.get_xdata()), len(survived.get_xdata())) == (4, 12)
    assert failed.get_markerfacecolor() == failed.get_markeredgecolor()
    assert survived.get_markerfacecolor() == "none"


def test_curves_have_the_area_of_the_table(study: Study) -> None:
    with drawing():
        plot = roc(study, ICLR)
    assert plot is not None
    table = study.findings("auroc").tables["auroc"]
    at_lead = table[table["lead"] == 20].set_index("signal")
    assert plot.panels == list(SIGNALS.values())
    for line, axes in zip(plot.lines, plot.figure.axes, strict=True):
        value = at_lead.loc[line.name, "value"]
        assert np.diff(line.x) @ line.y[:-1] == pytest.approx(value, abs=0.01)
        assert axes.texts[0].get_text().startswith(f"AUROC {value:.2f}\n[")
        assert line.low is not None
        assert line.high is not None
        assert ((line.low <= line.y) & (line.y <= line.high)).all()


def test_there_is_no_curve_of_a_few_runs(make_results: Callable[..., Path], tmp_path: Path) -> None:
    few = Study(load(make_results(tmp_path / "r", ("tis",), (16,), (0, 1), 100, shapes=shape)))
    with drawing():
        assert roc(few, ICLR) is None
        assert runs_before_failure(few, ICLR) is not None


def test_runs_that_the_collapse_rule_cannot_judge_are_not_shown(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    short = Study(load(make_results(tmp_path / "r", ("tis",), (16,), (0,), 4)))
    with drawing():
        assert roc(short, ICLR) is None
        assert runs_before_failure(short, ICLR) is None


def test_without_a_failure_there_is_nothing_to_show(make_results: Callable[..., Path], tmp_path: Path) -> None:
    healthy = Study(load(make_results(tmp_path / "r", ("clip",), (4,), (1,), 100, controls=False)))
    with drawing():
        assert runs_before_failure(healthy, ICLR) is None

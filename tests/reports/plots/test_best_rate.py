"""Captions of scores say what was done: whether rates were chosen, rewards normalized, and how many seeds there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.best_rate import score_at_best_rate
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.performance_profiles import profiles
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.study import Study

Make = Callable[..., Path]
METHODS = ("vcpo", "clip")


def drawn(study: Study, draw: Callable[[Study, Sheet], Plot | None] = score_at_best_rate) -> Plot:
    with drawing():
        plot = draw(study, Sheet())
    assert plot is not None
    return plot


def captions(study: Study) -> tuple[str, str, str]:
    """Of the figure, the profiles and the ranking table."""
    (table,) = comparison_tables(study, Ledger(), "ranking")
    return drawn(study).caption, drawn(study, profiles).caption, table.caption


@pytest.mark.parametrize(
    ("lrs", "says"),
    [
        ((3e-4,), "t the one learning rate, 3e-4"),
        ((1e-4, 3e-4), "t the learning rate that the other half of the seeds chose"),
    ],
)
def test_a_rate_is_best_only_where_it_was_chosen(
    tmp_path: Path, make_results: Make, lrs: tuple[float, ...], says: str
) -> None:
    study = Study(load(make_results(tmp_path / "results", methods=METHODS, lags=(4,), lrs=lrs, seeds=range(6))))
    assert all(says in caption for caption in captions(study))
    assert ("best learning rate" in drawn(study).title) == (len(lrs) > 1)
    assert [("widened" in caption) for caption in captions(study)] == [len(lrs) > 1, False, len(lrs) > 1]


def test_a_rate_per_task_is_no_choice(tmp_path: Path, make_results: Make) -> None:
    for task, lr in (("chain", 1e-4), ("walk", 3e-4)):
        make_results(tmp_path / task, methods=METHODS, lags=(4,), lrs=(lr,), tasks=(task,))
    study = Study(load([tmp_path / "chain", tmp_path / "walk"]))
    for caption in captions(study):
        assert "chose" not in caption
        assert "differs by task, regime or lag (1e-4 and 3e-4)" in caption
    assert "best learning rate" not in drawn(study).title


def test_a_choice_on_one_task_only_is_said(tmp_path: Path, make_results: Make) -> None:
    make_results(tmp_path / "chain", methods=METHODS, lags=(4,), lrs=(1e-4, 3e-4), tasks=("chain",))
    make_results(tmp_path / "walk", methods=METHODS, lags=(4,), lrs=(3e-4,), tasks=("walk",))
    study = Study(load([tmp_path / "chain", tmp_path / "walk"]))
    says = "the learning rate that the other half of the seeds chose, or the only one that all methods ran at"
    assert all(says in caption for caption in captions(study))


def test_one_seed_chooses_nothing(tmp_path: Path, make_results: Make) -> None:
    """Two rates on chain leave no score there with one seed: what is left was not chosen."""
    make_results(tmp_path / "chain", methods=METHODS, lags=(4,), lrs=(1e-4, 3e-4), tasks=("chain",), seeds=(0,))
    make_results(tmp_path / "walk", methods=METHODS, lags=(4,), lrs=(3e-4,), tasks=("walk",), seeds=(0,))
    study = Study(load([tmp_path / "chain", tmp_path / "walk"]))
    assert drawn(study).panels == ["walk"]
    assert all("t the one learning rate, 3e-4" in caption for caption in captions(study))
    said = " ".join(one.text for one in study.findings("compare").statements)
    assert "no method is shown at its best learning rate" in said
    assert "at its best learning rate, " not in said


@pytest.mark.parametrize("synchronous", [True, False])
def test_rewards_are_called_normalized_only_where_they_are(
    tmp_path: Path, make_results: Make, synchronous: bool
) -> None:
    study = Study(load(make_results(tmp_path / "r", methods=METHODS, lags=(4,), controls=synchronous)))
    for caption in captions(study):
        assert ("Score 0 is the start policy" in caption) == synchronous
        assert ("rewards as they are" in caption) == (not synchronous)
    axis = "score" if synchronous else "reward"
    assert drawn(study).figure.axes[0].get_ylabel() == drawn(study, profiles).figure.axes[0].get_xlabel() == axis
    levels = study.findings("compare").tables["profiles"]["level"]
    assert (levels.min(), levels.max()) == ((-1, 1.5) if synchronous else (0, 1)), "rewards lie from 0 to 1"


def test_one_seed_has_no_interval(tmp_path: Path, make_results: Make) -> None:
    study = Study(load(make_results(tmp_path / "r", methods=METHODS, lags=(4,), seeds=(0,))))
    figure, profile, table = captions(study)
    assert "Mean score of 1 seed, too few for a bar." in figure
    assert "with 1 seed each. There is no band." in profile
    assert "Intervals and tests are shown from 6 runs on." in table
    for caption in (figure, profile, table):
        assert "95%" not in caption
    (ranking,) = comparison_tables(study, Ledger(), "ranking")
    assert not any("95%" in heading for heading in ranking.headings)
    assert all(line.low is None for plot in (drawn(study), drawn(study, profiles)) for line in plot.lines)


def test_the_caption_names_a_bar_where_one_is_drawn(tmp_path: Path, make_results: Make) -> None:
    make_results(tmp_path / "six", methods=("vcpo",), lags=(4,), seeds=range(6))
    make_results(tmp_path / "two", methods=("clip",), lags=(4,), seeds=(0, 1), controls=False)
    plot = drawn(Study(load([tmp_path / "six", tmp_path / "two"])))
    assert "Mean score of 2 to 6 seeds; bar: 95% Student-t interval, none with fewer than 6." in plot.caption
    assert {line.name: line.low is not None for line in plot.lines}["vcpo"]
    assert {line.name: line.low is None for line in plot.lines}["clip"]


def test_seeds_are_counted(tmp_path: Path, make_results: Make) -> None:
    make_results(tmp_path / "more", methods=("vcpo",), lags=(4,), seeds=(0, 1, 2))
    make_results(tmp_path / "fewer", methods=("clip",), lags=(4,), seeds=(0, 1), controls=False)
    study = Study(load([tmp_path / "more", tmp_path / "fewer"]))
    assert "Mean score of 2 to 3 seeds, too few for a bar." in drawn(study).caption
    assert "2 to 3 runs per line, of all tasks and lags with 2 to 3 seeds each" in drawn(study, profiles).caption

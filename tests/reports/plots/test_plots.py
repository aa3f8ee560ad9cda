"""What is drawn equals what was recorded: the numbers behind each figure, checked against plain pandas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots.curves import QUANTITIES, trajectories
from vcpo_bench.reports.plots.lag_axis import realized_lag, reward_against_lag
from vcpo_bench.reports.plots.maps import ess_map, stability_map
from vcpo_bench.reports.plots.method_style import SURVIVORS, drawing, line_style
from vcpo_bench.reports.plots.pareto_tail import pareto_k
from vcpo_bench.reports.plots.performance_profiles import profiles
from vcpo_bench.reports.plots.sheet import add_legend, columns_for, figure_name, panel_grid
from vcpo_bench.reports.plots.survival_and_onset import at_onset, constant_set, survival
from vcpo_bench.reports.plots.update_time import phases
from vcpo_bench.reports.study import ComparisonSetting, Study

SHEET = Sheet(legend=True)
REWARD, ESS = QUANTITIES[0], QUANTITIES[1]


def drawn(draw: Callable[..., Plot | None], *arguments: object) -> Plot:
    with drawing():
        plot = draw(*arguments)
    assert plot is not None
    assert plot.caption.startswith(plot.title)
    return plot


def test_learning_curves_are_means_over_seeds_with_their_range(study: Study) -> None:
    plot = drawn(trajectories, study, SHEET, REWARD, "chain", "fifo")
    line = next(one for one in plot.lines if one.name == "vcpo" and plot.panels[one.panel].endswith("lag 16"))
    evals = study.results.evals.merge(study.cells[["key", "method", "staleness"]], on="key")
    mine = evals[(evals["method"] == "vcpo") & (evals["staleness"] == 16)].groupby("step")["sampled_reward"]
    assert line.x.tolist() == sorted(mine.groups)
    np.testing.assert_allclose(line.y, mine.mean())
    assert line.low is not None
    np.testing.assert_allclose(line.low, mine.min())


def test_figures_are_named_for_files_and_anchors() -> None:
    assert figure_name("ess-steps", "chain", "fifo") == "ess-steps-chain"
    assert figure_name("ess-steps", "walk-eos", "in flight") == "ess-steps-walk-eos-in-flight"
    assert figure_name("ess-map", "../chain(n=12)<b>", "fifo") == "ess-map-..-chain-n-12-b"


def test_lines_look_like_their_method(study: Study) -> None:
    plot = drawn(trajectories, study, SHEET, ESS, "chain", "fifo")
    axes = plot.figure.axes[plot.lines[0].panel]
    drawn_line = next(one for one in axes.lines if one.get_gid() and "-line-" in str(one.get_gid()))
    name = plot.methods[int(str(drawn_line.get_gid()).split("-")[0][1:])]
    assert drawn_line.get_color() == line_style(name).color
    assert drawn_line.get_marker() == line_style(name).marker
    assert [text.get_text() for text in plot.figure.legends[0].texts] == plot.methods


def test_a_run_that_ended_early_counts_while_it_ran(study: Study) -> None:
    plot = drawn(trajectories, study, SHEET, REWARD, "chain", "fifo")
    line = next(one for one in plot.lines if one.name == "clip" and plot.panels[one.panel].endswith("lag 16"))
    assert line.low is not None
    assert line.low[0] < line.y[0], "three seeds at first"
    assert line.low[-1] == line.y[-1], "one is left at the end"


def test_reward_against_lag_is_that_of_the_scoreboard(study: Study) -> None:
    plot = drawn(reward_against_lag, study, SHEET, "chain", "fifo")
    line = next(one for one in plot.lines if one.name == "vcpo")
    row = study.board[(study.board["method"] == "vcpo") & (study.board["staleness"] == 16)].iloc[0]
    at = line.x.tolist().index(16.0)
    assert line.y[at] == pytest.approx(row["final_reward"])
    assert line.low is None, "three seeds have no interval"


def test_realized_lag_is_a_distribution_per_requested_lag(study: Study) -> None:
    plot = drawn(realized_lag, study, SHEET)
    assert plot.panels == ["fifo, requested 0", "fifo, requested 1", "fifo, requested 16"]
    for line in plot.lines:
        assert line.y.sum() == pytest.approx(1.0)
    assert plot.lines[0].x.tolist() == [0.0]
    assert plot.lines[2].x.max() == 16.0


def test_ess_map_has_a_row_per_cell_and_marks_failures(study: Study) -> None:
    plot = drawn(ess_map, study, SHEET, "chain", "fifo")
    assert len(plot.lines) == len(study.cells)
    assert plot.lines[0].name.startswith("lag 0, reinforce")
    marks = plot.figure.axes[0].collections[-1].get_offsets()
    assert len(marks) == int(study.cells["onset"].notna().sum())
    image = plot.figure.axes[0].images[0].get_array()
    assert image is not None
    seen = {row.tobytes() for row in np.asarray(image)}
    assert seen == {np.asarray(line.y).tobytes() for line in plot.lines}, "a row per cell"
    assert sum(plot.blocks) == len(plot.lines)
    names = plot.figure.axes[0].get_yticklabels()
    blocks = study.cells[["staleness", "method"]].drop_duplicates()
    assert [label.get_position()[1] for label in names] == [block + 0.5 for block in range(len(blocks))]


def test_a_mark_of_the_ess_map_lies_in_the_row_of_its_cell(study: Study) -> None:
    axes = drawn(ess_map, study, SHEET, "chain", "fifo").figure.axes[0]
    names = [label.get_text().rpartition(" ")[2] for label in axes.get_yticklabels()]
    marked = {names[int(y)] for _, y in axes.collections[-1].get_offsets()}
    assert marked == set(study.cells.loc[study.cells["onset"].notna(), "method"])


def test_failed_runs_are_aligned_at_their_onset(study: Study) -> None:
    plot = drawn(at_onset, study, SHEET)
    assert plot.methods == ["clip", "reinforce", SURVIVORS]
    ess = {line.name: line for line in plot.lines if line.panel == 0}
    before, after = ess["reinforce"].y[0], ess["reinforce"].y[-1]
    assert after < 0.1 < before
    assert ess[SURVIVORS].y.min() > 0.5
    assert ess["reinforce"].x[0] < 0 < ess["reinforce"].x[-1]


def test_a_line_rests_on_the_same_runs_throughout() -> None:
    recorded = np.ones((4, 10), dtype=bool)
    recorded[0, :6] = False  # one run joins late, and would make a mean jump
    runs, bins = constant_set(recorded)
    assert runs.tolist() == [False, True, True, True]
    assert bins.all()
    recorded[1:, 8:] = False  # the others leave early: most values count
    runs, bins = constant_set(recorded)
    assert runs.tolist() == [False, True, True, True]
    assert bins.tolist() == [True] * 8 + [False] * 2
    assert not constant_set(np.zeros((3, 5), dtype=bool))[1].any()


def test_survival_falls_where_runs_fail(study: Study) -> None:
    plot = drawn(survival, study, SHEET)
    lines = {(plot.panels[line.panel], line.name): line for line in plot.lines}
    assert lines["lag 16", "reinforce"].y[-1] == 0.0
    assert lines["lag 16", "vcpo"].y.min() == 1.0
    onsets = study.cells.loc[(study.cells["method"] == "reinforce") & study.cells["collapsed"], "onset"]
    assert set(onsets) <= set(lines["lag 16", "reinforce"].x)


def test_stability_map_counts_failures(study: Study) -> None:
    plot = drawn(stability_map, study, SHEET, "chain", "fifo")
    texts = {axes.get_title(): [text.get_text() for text in axes.texts] for axes in plot.figure.axes}
    assert texts["reinforce"] == ["0/3", "0/3", "3/3"]
    assert texts["clip"] == ["0/3", "1/2"], "an error is not a collapse of the method"


def test_profiles_and_phases(study: Study) -> None:
    plot = drawn(profiles, study, SHEET)
    for line in plot.lines:
        assert (np.diff(line.y) <= 1e-12).all()
    bars = drawn(phases, study, SHEET)
    assert {line.name for line in bars.lines} == {"sampling", "scoring", "learning", "recording"}
    medians = 1e3 * study.results.steps["seconds_sample"].median()
    assert bars.lines[0].y == pytest.approx(medians, rel=0.1)


def test_tails_are_drawn_where_trajectories_were_recorded(
    study: Study, make_results: Callable[..., Path], tmp_path: Path
) -> None:
    with drawing():
        assert pareto_k(study, SHEET) is None, "recorded at level basic"
    root = make_results(
        tmp_path / "r", methods=("vcpo",), lags=(4,), seeds=(0, 1), steps=40, controls=False, record="full"
    )
    plot = drawn(pareto_k, Study(load(root)), SHEET)
    assert plot.panels == ["lag 4"]
    figure = plot.figure.axes[0]
    threshold = next(line for line in figure.lines if list(line.get_ydata()) == [0.7, 0.7])
    assert threshold.get_zorder() > max(one.get_zorder() for one in (*figure.collections, *figure.lines[:-1]))
    assert np.abs(plot.lines[0].y).max() < 1.0, "log-normal weights of small spread have a light tail"


def test_nothing_recorded_nothing_drawn(make_results: Callable[..., Path], tmp_path: Path) -> None:
    root = make_results(tmp_path / "r", methods=("vcpo",), lags=(4,), seeds=(0,), steps=30, controls=False)
    empty = Study(load(root))
    for name in ("steps", "evals", "lags"):
        empty.results.__dict__[name] = getattr(empty.results, name).iloc[:0]
    with drawing():
        for quantity in QUANTITIES:
            assert trajectories(empty, SHEET, quantity, "chain", "fifo") is None
        for draw in (ess_map, stability_map, reward_against_lag):
            assert draw(empty, SHEET, "chain", "fifo") is None
        for alone in (at_onset, survival, realized_lag, phases, profiles):
            assert alone(empty, SHEET) is None


def test_rounding_noise_does_not_stretch_a_log_axis(study: Study) -> None:
    noisy = Study(study.results.select(study.cells["key"]))
    lag_0 = set(study.cells.loc[study.cells["staleness"] == 0, "key"])
    steps = study.results.steps
    noise = steps["grad_norm"].where(~steps["key"].isin(lag_0), 1e-14)
    noisy.results.__dict__["steps"] = steps.assign(grad_norm=noise)
    quantity = next(one for one in QUANTITIES if one.column == "grad_norm")
    low, high = drawn(trajectories, noisy, SHEET, quantity, "chain", "fifo").figure.axes[0].get_ylim()
    assert 1e5 < high / low < 2e6, "a power of ten, five or six below the largest"
    low, high = drawn(trajectories, study, SHEET, quantity, "chain", "fifo").figure.axes[0].get_ylim()
    assert high / low < 100


def test_gradients_of_exactly_0_are_marked_at_the_edge_of_a_log_axis_and_counted(study: Study) -> None:
    still = Study(study.results.select(study.cells["key"]))
    steps = study.results.steps
    vcpo = set(study.cells.loc[(study.cells["method"] == "vcpo") & (study.cells["staleness"] == 16), "key"])
    off = steps["key"].isin(vcpo) & (steps["step"] > 60)
    still.results.__dict__["steps"] = steps.assign(grad_norm=steps["grad_norm"].mask(off, 0.0))
    quantity = next(one for one in QUANTITIES if one.column == "grad_norm")
    plot = drawn(trajectories, still, SHEET, quantity, "chain", "fifo")
    points = [line.y for line in plot.lines]
    zeros = sum(int((y == 0).sum()) for y in points)
    assert zeros > 1
    assert f" {zeros} of {sum(y.size for y in points)} points are exactly 0: markers on the lower edge." in plot.caption
    place = plot.methods.index("vcpo")
    (marks,) = [
        line for axes in plot.figure.axes for line in axes.lines if (line.get_gid() or "").startswith(f"m{place}-zero-")
    ]
    (own,) = [line for line in plot.lines if line.name == "vcpo" and (line.y == 0).any()]
    assert list(marks.get_xdata()) == list(own.x[own.y == 0])
    assert set(marks.get_ydata()) == {0.0}
    assert marks.get_transform() == marks.axes.get_xaxis_transform()
    assert "exactly 0" not in drawn(trajectories, study, SHEET, quantity, "chain", "fifo").caption


def test_missing_and_infinite_values_leave_gaps(study: Study) -> None:
    broken = Study(study.results.select(study.cells["key"]))
    steps = study.results.steps.copy()
    steps.loc[steps.index[::7], "ess_ratio"] = np.nan
    steps.loc[steps.index[::11], "grad_norm"] = np.inf
    broken.results.__dict__["steps"] = steps
    for quantity in QUANTITIES[:3]:
        for line in drawn(trajectories, broken, SHEET, quantity, "chain", "fifo").lines:
            assert np.isfinite(line.y).all()


def test_a_long_legend_does_not_squeeze_the_panels() -> None:
    with drawing():
        heights = []
        for methods in (["vcpo"], [f"clip(high=0.{i})" for i in range(30, 48)]):
            sheet = Sheet(width=5.5, panel_height=1.35, legend=True)
            figure, axes = panel_grid(sheet, 2, 2)
            add_legend(figure, sheet, methods)
            figure.canvas.draw()
            heights.append(axes[0].get_position().height * figure.get_figheight())
    assert heights[1] > 0.9 * heights[0]


def test_panels_without_room_fill_their_rows_evenly() -> None:
    assert [columns_for(Sheet(most_columns=4), count) for count in (1, 3, 4, 5, 6, 7, 9)] == [1, 3, 4, 3, 3, 4, 3]
    assert columns_for(Sheet(most_columns=2), 5) == 2


def test_a_lag_with_large_weights_does_not_flatten_the_others(study: Study) -> None:
    weights = next(one for one in QUANTITIES if one.name == "log-weight-steps")
    plot = drawn(trajectories, study, SHEET, weights, "chain", "fifo")
    tops = [axes.get_ylim()[1] for axes in plot.figure.axes]
    for panel, top in enumerate(tops):
        highest = max(float(np.nanmax(line.y)) for line in plot.lines if line.panel == panel)
        assert highest > 0.3 * top, "the lines use the height of their panel"
    assert len(set(tops)) > 1
    assert {axes.get_ylim()[0] for axes in plot.figure.axes} == {0.0}, "sizes start at 0"
    assert "axes of different lags differ" in plot.caption


def test_a_lag_with_tiny_weights_does_not_stretch_the_axes_of_the_others(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    weights = next(one for one in QUANTITIES if one.name == "log-weight-steps")
    root = make_results(tmp_path / "r", methods=("vcpo",), lags=(1, 4), seeds=(0,), steps=40, controls=False)
    study = Study(load(root))
    (far,) = study.runs(ComparisonSetting("chain", "fifo", 3e-4, 4), "vcpo")["key"]
    study.steps[far] = study.steps[far] | {"log_weight_max": np.full(40, -10.0)}
    plot = drawn(trajectories, study, SHEET, weights, "chain", "fifo")
    assert [axes.get_ylim()[0] for axes in plot.figure.axes] == [0.0, -10.0]


def test_only_the_last_row_of_panels_names_the_lag(make_results: Callable[..., Path], tmp_path: Path) -> None:
    rates = (1e-4, 2e-4, 4e-4)
    root = make_results(tmp_path / "r", methods=("vcpo",), lags=(1, 4), seeds=(0,), steps=40, lrs=rates)
    plot = drawn(reward_against_lag, Study(load(root)), Sheet(most_columns=2), "chain", "fifo")
    assert [axes.get_xlabel() for axes in plot.figure.axes] == ["", "lag (updates)", "lag (updates)"]


def test_a_panel_of_runs_that_were_not_made_says_so(make_results: Callable[..., Path], tmp_path: Path) -> None:
    root = make_results(tmp_path / "r", methods=("vcpo",), lags=(1, 4), seeds=(0,), steps=40, lrs=(1e-4, 4e-4))
    results = load(root)
    made = results.select(results.cells.loc[(results.cells["staleness"] != 1) | (results.cells["lr"] > 2e-4), "key"])
    plot = drawn(trajectories, Study(made), SHEET, REWARD, "chain", "fifo")
    said = {axes.get_title(): [text.get_text() for text in axes.texts] for axes in plot.figure.axes}
    assert said["lag 1, lr 1e-4"] == ["not run"]
    assert not said["lag 4, lr 1e-4"]

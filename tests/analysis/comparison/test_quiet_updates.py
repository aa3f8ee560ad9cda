"""Times of methods are compared where the machine was as fast for one as for the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vcpo_bench.analysis.comparison.ablation import cost_table
from vcpo_bench.analysis.comparison.quiet_updates import quiet_updates
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.plots.update_time import phases
from vcpo_bench.reports.study import Study

PHASES = ["seconds_sample", "seconds_score", "seconds_update", "seconds_record"]


def slowed(results: Results, method: str, first: int, times: float = 5.0) -> np.ndarray:
    """Slow the updates of a method from one on, as another program would; returns which."""
    keys = results.cells.loc[results.cells["method"] == method, "key"]
    rows = results.steps["key"].isin(keys) & (results.steps["step"] >= first)
    results.steps.loc[rows, PHASES] *= times
    return rows.to_numpy()


@pytest.fixture
def results(make_results: Callable[..., Path], tmp_path: Path) -> Results:
    return load(make_results(tmp_path / "r", ("clip", "tis"), (4,), (0, 1), 60, controls=False))


def test_on_a_free_machine_every_update_counts(results: Results) -> None:
    assert quiet_updates(results).all()


def test_what_another_program_slowed_does_not_count(results: Results) -> None:
    slow = slowed(results, "tis", 20)
    assert (quiet_updates(results) == ~slow).all()


def test_a_run_with_a_handful_of_quiet_updates_has_no_time(results: Results) -> None:
    slowed(results, "tis", 9)
    keys = results.cells.loc[results.cells["method"] == "tis", "key"]
    assert not quiet_updates(results)[results.steps["key"].isin(keys)].any()
    assert np.isnan(cost_table(results).set_index("method").loc["tis", "milliseconds"])


def test_load_does_not_make_a_method_look_slow(results: Results) -> None:
    before = cost_table(results).set_index("method")["milliseconds"]
    slowed(results, "tis", 20)
    after = cost_table(results).set_index("method")["milliseconds"]
    assert after["tis"] == pytest.approx(before["tis"], rel=0.05)


def test_the_figure_says_what_it_leaves_out(results: Results) -> None:
    slowed(results, "tis", 0)
    with drawing():
        plot = phases(Study(results), Sheet())
    assert plot is not None
    assert plot.panels == ["clip"]
    assert "50% of the updates are left out" in plot.caption
    assert "So tis cannot be shown." in plot.caption

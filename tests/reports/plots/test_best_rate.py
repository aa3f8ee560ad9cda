"""The first figure says at which learning rate its points are: one rate is no choice."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.figure import Sheet
from vcpo_bench.reports.plots.best_rate import score_at_best_rate
from vcpo_bench.reports.plots.method_style import drawing
from vcpo_bench.reports.study import Study


@pytest.mark.parametrize(
    ("lrs", "says"),
    [((3e-4,), "at the one learning rate, 3e-4."), ((1e-4, 3e-4), "that the other half of the seeds chose.")],
)
def test_one_learning_rate_is_not_called_the_best(
    tmp_path: Path, make_results: Callable[..., Path], lrs: tuple[float, ...], says: str
) -> None:
    study = Study(load(make_results(tmp_path / "results", methods=("vcpo",), lags=(4,), lrs=lrs)))
    with drawing():
        plot = score_at_best_rate(study, Sheet())
    assert plot is not None
    assert says in plot.caption
    assert all(len(axis.get_yticks()) > 2 for axis in plot.figure.axes)
    assert ("best learning rate" in plot.title) == (len(lrs) > 1)

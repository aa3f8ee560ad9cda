"""`vb.figure`: a figure of the report for a notebook or a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

import vcpo_bench as vb
from vcpo_bench.errors import UsageError


@pytest.fixture(scope="module")
def folder(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("figure") / "small"
    return make_results(root, ("tis", "vcpo"), (16,), (0, 1), 60, tasks=("chain", "walk"))


def test_it_is_a_matplotlib_figure_of_the_venue_with_its_caption(folder: Path) -> None:
    before = dict(mpl.rcParams)
    figure = vb.figure(folder, venue="icml")
    assert isinstance(figure, Figure)
    assert figure.get_figwidth() == 3.25
    assert figure.get_label().startswith("What changes before a collapse?")
    assert figure.axes[0].yaxis.get_ticklabels()[0].get_fontfamily() == ["STIXGeneral"]
    assert dict(mpl.rcParams) == before


def test_it_can_be_changed_and_saved(folder: Path, tmp_path: Path) -> None:
    figure = vb.figure(vb.load(folder), "survival", venue="4in@9pt", methods=["tis"])
    figure.axes[0].set_title("mine")
    figure.savefig(tmp_path / "mine.svg")
    assert (tmp_path / "mine.svg").stat().st_size > 1000


def test_what_cannot_be_drawn_is_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="several ess-map: ess-map-chain, ess-map-walk"):
        vb.figure(folder, "ess-map")
    with pytest.raises(UsageError, match="k-hat needs trajectories"):
        vb.figure(folder, "k-hat")
    with pytest.raises(UsageError, match="did you mean survival"):
        vb.figure(folder, "survivals")

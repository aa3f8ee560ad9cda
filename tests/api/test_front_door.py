"""What `import vcpo_bench` offers, and what it costs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

import vcpo_bench as vb
from vcpo_bench.analysis.diagnosis import read_run
from vcpo_bench.errors import UsageError

ROOT = Path(vb.__file__).resolve().parent
NAMES = ["Monitor", "Tables", "diagnose", "figure", "load", "methods", "run"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    assert getattr(vb, name).__doc__
    assert name in dir(vb)
    assert name in vb.__all__


def test_nothing_else_is_listed() -> None:
    assert dir(vb) == sorted([*NAMES, "__version__"])


def test_type_checkers_know_the_same_names() -> None:
    stub = ast.parse((ROOT / "__init__.pyi").read_text())
    known = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert sorted(known) == NAMES


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        vb.lode  # noqa: B018


def test_a_cell_is_diagnosed_from_its_path_and_from_what_was_read(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_results(tmp_path / "r", methods=("tis",), lags=(16,), seeds=(0,), steps=120, controls=False)
    (cell,) = (folder / "cells").iterdir()
    found = vb.diagnose(cell)
    assert found.outcome.verdict == vb.diagnose(read_run(cell)).outcome.verdict
    assert found.outcome.verdict == "collapsed"
    assert vb.diagnose(cell, baseline=cell).outcome.verdict == found.outcome.verdict


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

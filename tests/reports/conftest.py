"""One small study and its rendered page, shared by the tests of this room because drawing takes time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.reports.document import Document
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.report import build
from vcpo_bench.reports.sections.cell_pages import cell_pages
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.html import render_document


def shape(method: str, lag: int, seed: int) -> str:
    """Collapses without correction at lag 16; `clip` fails there in three different ways."""
    if lag < 4:
        return "healthy"
    if method == "clip":
        return ("nan", "error", "dip")[seed % 3]
    return "collapsed" if method == "reinforce" else "healthy"


@pytest.fixture(scope="session")
def folder(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study") / "small"
    return make_results(root, methods=("vcpo", "clip"), lags=(1, 16), steps=120, shapes=shape)


@pytest.fixture(scope="session")
def study(folder: Path) -> Study:
    return Study(load(folder))


@pytest.fixture(scope="session")
def document(study: Study) -> Document:
    return build(study)


@pytest.fixture(scope="session")
def ledger(document: Document) -> Ledger:
    return document.ledger


@pytest.fixture(scope="session")
def page(study: Study, document: Document) -> str:
    """The page; drawing it reads no column of the updates again, since opening thousands of tables takes time."""

    def again(*_: object) -> None:
        raise AssertionError("a figure needs columns that were released")

    assert "lag_max" not in study.results._columns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study.results, "_read_columns", again)
        return render_document(document, cell_pages(study))

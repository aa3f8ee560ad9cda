"""Results that the tests of this folder print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import Results, load


@pytest.fixture(scope="module")
def results(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("terminal")
    shapes = {"tis": "collapsed", "clip": "nan"}
    return load(
        make_results(folder, methods=("vcpo", "tis", "clip"), lags=(16,), steps=120, shapes=shapes, seeds=range(6))
    )

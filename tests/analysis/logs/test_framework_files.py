"""A framework is one file of a folder, found by listing it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from vcpo_bench.analysis.logs import names

NEW = """title: My trainer
source: the version of today
step: updates
markers: [mine/loss]
prefixes: [train/]
names:
  - [mine/reward, reward, exact]
switches: {}
"""


def forget_frameworks() -> None:
    for cached in (names.frameworks, names._facts, names._every_name, names._every_pattern):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _listed_anew() -> Iterator[None]:
    yield
    forget_frameworks()


def test_a_file_dropped_into_the_folder_is_a_framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "frameworks"
    shutil.copytree(names.FRAMEWORKS, folder)
    (folder / "my-trainer.yaml").write_text(NEW)
    before = names.frameworks()
    monkeypatch.setattr(names, "FRAMEWORKS", folder)
    forget_frameworks()
    assert set(names.frameworks()) == {*before, "my-trainer"}
    found = names.find_framework("auto", ["train/mine/loss", "train/mine/reward"])
    assert found is not None
    assert (found.name, found.title) == ("my-trainer", "My trainer")
    assert names.is_known_anywhere("train/mine/reward")


def test_every_framework_maps_to_columns_there_are() -> None:
    known = names.columns()
    assert {"verl", "trl", "vcpo-bench", "vespo-fork"} <= set(names.frameworks())
    for framework in names.frameworks().values():
        assert framework.names, framework.name
        assert {one.column for one in framework.names} <= set(known)

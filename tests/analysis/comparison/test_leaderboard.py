"""Entries of a leaderboard: made from runs, and checked whenever they are read."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vcpo_bench.analysis.comparison.board_settings import settings_text, unusual_settings
from vcpo_bench.analysis.comparison.leaderboard import Entry, find_problem, is_name, read_entry, rows_of
from vcpo_bench.errors import DamagedResultError

SCORES = pd.DataFrame(
    [
        ("chain", "fifo", 16, 3e-4, "vcpo", False, "completed", "healthy", False, 0.8),
        ("chain", "fifo", 16, 3e-4, "vcpo", False, "completed", "healthy", False, 0.6),
        ("chain", "fifo", 16, 3e-4, "vcpo", False, "error", "not applicable", False, float("nan")),
        ("chain", "fifo", 16, 3e-4, "tis", False, "completed", "collapse", True, 0.1),
        ("chain", "fifo", 16, 3e-4, "reinforce", True, "completed", "collapse", True, 0.0),
    ],
    columns=["task", "regime", "staleness", "lr", "method", "control", "status", "event", "collapsed", "score"],
)
SETTINGS: list[dict[str, object]] = [{"steps": 80}] * len(SCORES)
ENTRY = Entry("mine", "Mine", "A. Student", "a laptop", "0.1.0", "1.0", 5, rows_of(SCORES, SETTINGS))


def test_rows_are_means_over_seeds_without_controls() -> None:
    tis, vcpo = ENTRY.rows
    assert tis | {"method": "tis", "score": 0.1, "low": None, "high": None, "failed": 1, "judged": 1} == tis
    assert (vcpo["method"], vcpo["seeds"], vcpo["score"], vcpo["failed"], vcpo["judged"]) == ("vcpo", 2, 0.7, 0, 2)
    assert (vcpo["low"], vcpo["high"]) == (None, None), "two seeds have no interval"


def test_rows_hold_the_settings_that_differ_from_the_defaults() -> None:
    assert [row["settings"] for row in ENTRY.rows] == [{"steps": 80}] * 2
    of_both = rows_of(pd.concat([SCORES, SCORES]), [*SETTINGS, *([{"policy": "own"}] * len(SCORES))])
    assert sorted({settings_text(row["settings"]) for row in of_both}) == [
        "300 updates of 16 prompts x 8 responses, policy own",
        "80 updates of 16 prompts x 8 responses",
    ]
    assert [row["seeds"] for row in of_both] == [1, 2, 1, 2]


def test_cells_that_do_not_name_a_setting_have_its_default() -> None:
    mixed = pd.DataFrame({"steps": [300, 300], "lr_warmup": [0, float("nan")], "chat": [False, None]})
    assert unusual_settings(mixed) == [{"lr_warmup": 0, "chat": False}, {}]
    assert unusual_settings(pd.DataFrame(index=[0])) == [{}]
    assert settings_text({"lr_warmup": 0, "chat": False}).endswith("responses, lr warmup 0, chat off")


def test_an_entry_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(ENTRY.text())
    assert read_entry(tmp_path / "mine.json") == ENTRY


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: one.pop("by"), "'by' is missing"),
        (lambda one: one.update(extra=1), "'extra' is unknown"),
        (lambda one: one.update(schema=1), "schema is 1, and this version reads 2, which names the settings"),
        (lambda one: one.update(last_evaluations=0), "the mean of no evaluation"),
        (lambda one: one["rows"][0].pop("settings"), "row 1: the field 'settings' is missing"),
        (lambda one: one["rows"][0]["settings"].update(speed=1), "row 1: the setting 'speed' is unknown"),
        (lambda one: one["rows"][0]["settings"].update(steps=True), "row 1: the setting 'steps' is True"),
        (lambda one: one["rows"][0]["settings"].update(weight_decay=float("inf")), "'weight_decay' is inf"),
        (lambda one: one["rows"][0]["settings"].update(prompts=16), "'prompts' has its default, 16"),
        (lambda one: one.update(cells=True), "'cells' is True"),
        (lambda one: one.update(name="../mine"), "its name"),
        (lambda one: one["rows"][0].update(score="0.5"), "row 1: the field 'score'"),
        (lambda one: one["rows"][1].update(score=2.0, low=0.6, high=0.8), "row 2: the score lies outside"),
        (lambda one: one["rows"][0].update(failed=9), "row 1: a count"),
        (lambda one: one["rows"][0].update(lr=0), "row 1: a number"),
        (lambda one: one["rows"].append(dict(one["rows"][0])), "two rows"),
        (lambda one: one["rows"].append(3), "row 3: it is no JSON object"),
    ],
)
def test_what_is_no_entry_is_named(change: Callable[[dict[str, Any]], object], says: str, tmp_path: Path) -> None:
    content = json.loads(ENTRY.text())
    assert find_problem(content) == ""
    change(content)
    assert says in find_problem(content)
    (tmp_path / "bad.json").write_text(json.dumps(content))
    with pytest.raises(DamagedResultError, match="is no entry"):
        read_entry(tmp_path / "bad.json")


def test_a_file_that_is_no_json_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(DamagedResultError, match="cannot be read"):
        read_entry(tmp_path / "bad.json")
    assert not is_name("a b")
    assert replace(ENTRY, title="x") != ENTRY

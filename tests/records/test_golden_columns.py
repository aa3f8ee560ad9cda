"""What is recorded stays readable: names, order, storage types, units and meanings are those of the golden file."""

import json
from pathlib import Path
from runpy import run_path

import pytest

from vcpo_bench.records import RULES_VERSION

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "recorded_columns.json").read_text())
VERSION = GOLDEN.pop("rules_version")
written = run_path(str(FOLDER / "make_recorded_columns.py"))["written"]


def test_the_golden_file_is_of_these_rules() -> None:
    assert VERSION == RULES_VERSION, "new rules: regenerate the golden columns in the same commit"


@pytest.mark.parametrize("table", [name for name in GOLDEN if name != "steps"])
def test_tables_are_those_of_the_golden_file(table: str) -> None:
    assert written(table) == GOLDEN[table]


def test_columns_of_an_update_keep_their_place_whatever_is_added() -> None:
    known = {column[0] for column in GOLDEN["steps"]}
    assert [column for column in written("steps") if column[0] in known] == GOLDEN["steps"]

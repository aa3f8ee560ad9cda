"""A name alone means the same settings forever: cell keys and expressions leave out what has its default."""

import json
from dataclasses import fields
from pathlib import Path
from runpy import run_path

import pytest

from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.records import RULES_VERSION

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "defaults.json").read_text())
VERSION, SETTINGS = GOLDEN.pop("rules_version"), GOLDEN.pop("settings")
MADE_BY = run_path(str(FOLDER / "make_defaults.py"))
CATALOGS: dict[str, Catalog] = MADE_BY["CATALOGS"]


def test_the_golden_file_is_of_these_rules() -> None:
    assert VERSION == RULES_VERSION, "new rules: regenerate the golden defaults in the same commit"


@pytest.mark.parametrize("kind", GOLDEN)
def test_defaults_are_those_of_the_golden_file(kind: str) -> None:
    assert {name: MADE_BY["written"](kind, name) for name in GOLDEN[kind]} == GOLDEN[kind]


def test_settings_of_a_cell_have_the_defaults_of_the_golden_file() -> None:
    found = MADE_BY["settings"]()
    assert {name: found[name] for name in SETTINGS} == SETTINGS


@pytest.mark.parametrize("kind", GOLDEN)
def test_everything_named_is_frozen_and_takes_keywords_only(kind: str) -> None:
    for each in CATALOGS[kind].kinds.values():
        assert each.__dataclass_params__.frozen, each  # type: ignore[attr-defined]
        assert all(field.kw_only for field in fields(each)), each

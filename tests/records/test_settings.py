"""A setting is written once: from its line in the table follow field, flag, checks, units and comparability."""

import json
import math
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vcpo_bench.analysis.comparability import BUDGET, DEFAULTS
from vcpo_bench.api.units import CELL_COLUMNS
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records.cell_file import read_cell_file
from vcpo_bench.records.setting import Setting, settings_of
from vcpo_bench.records.settings import SETTINGS, CellSettings, LanguageModelSettings, read_settings

CELL = CellConfig(method="clip", staleness=4, seed=0)
SHARED = settings_of(CellSettings)
FOR_MODELS = settings_of(LanguageModelSettings)
EXPRESSIONS = {"optimizer": "sgd", "sampler": "generate", "trainer": "trl"}
"""Other values of settings that are read by a grammar."""
SPEC = GridSpec(("clip", "vcpo"), (0, 4), (0, 1))


def another(one: Setting) -> Any:
    """A legal value that is not the default."""
    if one.kind is str:
        return next((word for word in one.choices if word != one.default), EXPRESSIONS.get(one.name, "ab"))
    usual = 0 if one.default is MISSING else one.default
    return not usual if one.kind is bool else usual + one.kind(1)


def wrong(one: Setting) -> list[Any]:
    """Values that are not legal."""
    if one.kind is str:
        return [3, None, "x" * 501, "\x1b[2J", *(["ab"] if one.choices else []), *(["/"] if one.pattern else [])]
    if one.kind is bool:
        return [1, "yes", None]
    limits = [limit for limit in (one.least - 1, one.above) if limit > -math.inf]
    return [
        "3",
        True,
        None,
        math.nan,
        math.inf,
        10**400,
        *map(one.kind, limits),
        *([-1, 2**63, 1.5] if one.kind is int else []),
    ]


@pytest.mark.parametrize("name", sorted(SHARED.keys() - FOR_MODELS.keys() - {"policy"}))
def test_a_setting_reaches_every_cell(name: str) -> None:
    value = another(SETTINGS[name])
    cells = plan_grid(replace(SPEC, settings=CellSettings(**{name: value})))
    assert {getattr(cell.config, name) for cell in cells} == {value}


@pytest.mark.parametrize("name", FOR_MODELS)
def test_settings_of_language_models_reach_every_cell_and_are_refused_without_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = another(SETTINGS[name])
    changed = replace(SPEC, methods=("clip",), settings=CellSettings(**{name: value}), tasks=("arithmetic",))
    with pytest.raises(UsageError, match=f"{SETTINGS[name].flag}: applies only to language models; add --model"):
        plan_grid(changed)
    monkeypatch.setattr("vcpo_bench.bench.cells.grid_spec.model_identity", lambda source: f"{source}@0")
    monkeypatch.setattr("vcpo_bench.bench.cells.grid_spec.model_folder", lambda source: None)
    cells = plan_grid(replace(changed, model="tiny", settings=replace(changed.settings, **{name: value})))
    assert {getattr(cell.config, name) for cell in cells} == {value}
    assert {cell.config.model for cell in cells} == {"tiny@0"}
    assert changed.settings.without_language_model() == CellSettings()


@pytest.mark.parametrize("one", SETTINGS.values(), ids=SETTINGS)
def test_a_value_that_is_not_legal_is_one_line_with_its_flag(one: Setting) -> None:
    assert getattr(replace(CELL, **{one.name: another(one)}), one.name) == another(one)
    for value in wrong(one):
        with pytest.raises(UsageError, match=rf"^{one.flag} .*: must be ") as raised:
            replace(CELL, **{one.name: value})
        assert len(str(raised.value).splitlines()) == 1 or value == "\x1b[2J"
        assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("steps", 0, "a whole number, 1 or more"),
        ("micro_tokens", -1, "a whole number, 0 or more"),
        ("record", "everything", "'basic', 'diagnostics' or 'full'"),
        ("weight_decay", float("nan"), "a finite number, 0 or more"),
    ],
)
def test_the_line_says_what_is_legal(name: str, value: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=f"^{SETTINGS[name].flag} {value}: must be {rule}$"):
        read_settings({name: value})


def test_the_largest_legal_values() -> None:
    assert replace(CELL, seed=2**63 - 1, method="x" * 500).seed == 2**63 - 1


@pytest.mark.parametrize("one", SETTINGS.values(), ids=SETTINGS)
def test_cell_json_is_read_by_the_same_rules(one: Setting, tmp_path: Path) -> None:
    path = tmp_path / "a" / "cell.json"
    path.parent.mkdir()

    def read(value: Any) -> dict[str, Any]:
        config = CELL.values() | {one.name: value}
        path.write_text(json.dumps({"key": "a", "status": "completed", "config": config}))
        return read_cell_file(path)["config"]

    assert read(another(one))[one.name] == another(one)
    for value in wrong(one):
        if value in (*(["ab"] if one.choices else []), *(["/"] if one.pattern else [])):
            assert read(value)[one.name] == value, "another version may know this word"
            continue
        with pytest.raises(DamagedResultError, match=f"has config.{one.name} = .*, not "):
            read(value)


@pytest.mark.parametrize("one", SETTINGS.values(), ids=SETTINGS)
def test_every_setting_moves_the_key(one: Setting) -> None:
    assert replace(CELL, **{one.name: another(one)}).key(1) != CELL.key(1)
    if one.default is not MISSING:
        assert replace(CELL, **{one.name: one.default}).key(1) == CELL.key(1)
        assert one.name not in CELL.changed()


def test_columns_have_the_units_and_meanings_of_the_table() -> None:
    for name, one in SETTINGS.items():
        assert CELL_COLUMNS[name] == (one.unit, one.meaning)
        assert one.unit
        assert len(one.meaning.splitlines()) == 1


def test_analysis_knows_what_tells_cells_apart() -> None:
    noted = {name for name, one in SETTINGS.items() if one.apart}
    assert noted == DEFAULTS.keys()
    assert set(BUDGET) == {name for name, one in SETTINGS.items() if one.apart == "budget"}
    usual = CELL.values()
    assert {name: usual[name] for name in noted} == DEFAULTS


def test_settings_are_read_from_the_flags_given() -> None:
    assert read_settings({"steps": 5, "chat_template": False, "jobs": 3}) == CellSettings(steps=5, chat=False)
    assert read_settings({one.parameter: one.default for one in SHARED.values()}) == CellSettings()


def test_numbers_of_numpy_become_those_of_python() -> None:
    settings = CellSettings(steps=np.int64(5), weight_decay=np.float32(0.5))  # type: ignore[arg-type]
    assert [type(value) for value in (settings.steps, settings.weight_decay)] == [int, float]
    assert type(CellConfig(method="clip", staleness=0, seed=0, lr=1).lr) is float


def test_a_cell_has_all_settings() -> None:
    assert list(CELL.values()) == list(SETTINGS)
    assert list(SETTINGS)[: len(SHARED)] == list(SHARED)
    assert SETTINGS.keys() - SHARED.keys() == {
        *("method", "staleness", "seed", "task", "regime", "lr", "series"),
        *("start", "parent", "fork_step", "model", "plugins", "device"),
    }

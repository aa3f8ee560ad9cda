"""A setting is written once: its field reaches every cell, and its flag has the same name, default and limits."""

import inspect
from dataclasses import replace
from typing import Any

import pytest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings, LanguageModelSettings, flag_of, read_settings
from vcpo_bench.commands.run import run
from vcpo_bench.errors import UsageError

WITHOUT_A_FLAG = {"eval_every", "stop"}
"""Fixed for all runs; decided by `--stop-on-alarm`."""
CHANGED: dict[str, Any] = {
    "steps": 7,
    "prompts": 3,
    "responses": 5,
    "eval_every": 2,
    "record": "full",
    "stop": "x",
    "optimizer": "sgd",
    "weight_decay": 0.5,
    "lr_warmup": 3,
    "policy": "moe",
    "replay": "r3",
    "dtype": "bfloat16",
    "lora": 4,
    "chat": False,
    "learner": "tinker(rank=8)",
    "sampler": "generate",
    "max_response": 9,
    "micro_tokens": 64,
    "checkpointing": True,
    "shards": 2,
}
BESIDE: dict[str, dict[str, Any]] = {"replay": {"policy": "moe"}}
"""What a setting does not go without."""
SPEC = GridSpec(("clip", "vcpo"), (0, 4), (0, 1))


def test_every_setting_is_tried_here() -> None:
    assert CHANGED.keys() == CellSettings.model_fields.keys()
    plain = CellSettings()
    assert all(getattr(plain, name) != value for name, value in CHANGED.items())


@pytest.mark.parametrize("name", sorted(CellSettings.model_fields.keys() - LanguageModelSettings.model_fields.keys()))
def test_a_setting_reaches_every_cell(name: str) -> None:
    cells = plan_grid(replace(SPEC, settings=CellSettings(**{name: CHANGED[name]} | BESIDE.get(name, {}))))
    assert {getattr(cell.config, name) for cell in cells} == {CHANGED[name]}


@pytest.mark.parametrize("name", sorted(LanguageModelSettings.model_fields))
def test_settings_of_language_models_reach_every_cell_and_are_refused_without_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = replace(SPEC, methods=("clip",), settings=CellSettings(**{name: CHANGED[name]}), tasks=("arithmetic",))
    with pytest.raises(UsageError, match=f"{flag_of(name)}: applies only to language models; add --model"):
        plan_grid(changed)
    monkeypatch.setattr("vcpo_bench.bench.cells.grid_spec.model_identity", lambda source: f"{source}@0")
    monkeypatch.setattr("vcpo_bench.bench.cells.grid_spec.model_folder", lambda source: None)
    cells = plan_grid(replace(changed, model="tiny"))
    assert {getattr(cell.config, name) for cell in cells} == {CHANGED[name]}
    assert {cell.config.model for cell in cells} == {"tiny@0"}
    assert changed.settings.without_language_model() == CellSettings()


def test_flags_of_settings_have_their_names_and_defaults() -> None:
    defaults = {name: parameter.default for name, parameter in inspect.signature(run).parameters.items()}
    flags = {name: flag_of(name)[2:].replace("-", "_") for name in CellSettings.model_fields.keys() - WITHOUT_A_FLAG}
    assert {name: defaults[flag] for name, flag in flags.items()} == CellSettings().model_dump(exclude=WITHOUT_A_FLAG)
    others = {name: field.default for name, field in CellConfig.model_fields.items()}
    assert (defaults["task"], defaults["regime"], defaults["device"]) == tuple(
        others[name] for name in ("task", "regime", "device")
    )
    spec = GridSpec(("vcpo",), (1,), (0,))
    assert spec.lrs == (float(defaults["lr"]),) == (others["lr"],)
    assert (*spec.tasks, *spec.regimes, spec.device) == (others["task"], others["regime"], others["device"])
    assert read_settings(defaults) == CellSettings()


def test_settings_are_read_from_the_flags_given() -> None:
    assert read_settings({"steps": 5, "chat_template": False, "jobs": 3}) == CellSettings(steps=5, chat=False)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("steps", 0, "greater than or equal to 1"),
        ("micro_tokens", -1, "greater than or equal to 0"),
        ("record", "everything", "'basic', 'diagnostics' or 'full'"),
        ("weight_decay", float("nan"), "a finite number"),
    ],
)
def test_a_value_out_of_range_is_one_line_with_its_flag(name: str, value: Any, rule: str) -> None:
    with pytest.raises(UsageError, match=f"^{flag_of(name)} {value}: must be {rule}$"):
        read_settings({name: value})


def test_a_cell_has_all_settings() -> None:
    assert issubclass(CellConfig, CellSettings)
    own = CellConfig.model_fields.keys() - CellSettings.model_fields.keys()
    assert own == {
        *("method", "staleness", "seed", "task", "regime", "lr", "series"),
        *("start", "parent", "fork_step", "model", "plugins", "device"),
    }

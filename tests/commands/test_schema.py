"""`vcpo-bench lab schema`: it accepts what `--config` accepts."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import call

from vcpo_bench.configs import PRESETS

JSON_TYPES = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "array": list}


def accepts(rule: dict[str, Any], value: object) -> bool:
    """The few keywords that the schema uses."""
    if "enum" in rule:
        return value in rule["enum"]
    if "anyOf" in rule:
        return any(accepts(one, value) for one in rule["anyOf"])
    types = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
    right = any(isinstance(value, JSON_TYPES[one]) and (one == "boolean") == isinstance(value, bool) for one in types)
    return right and all(accepts(rule["items"], item) for item in (value if isinstance(value, list) else []))


def schema() -> dict[str, Any]:
    return json.loads(call("lab", "schema").stdout)


@pytest.mark.parametrize("path", sorted(PRESETS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_preset_is_accepted(path: Path) -> None:
    properties = schema()["properties"]
    for key, value in yaml.safe_load(path.read_text()).items():
        assert accepts(properties[key], value), key


def test_it_is_as_strict_as_the_reader() -> None:
    found = schema()
    assert found["additionalProperties"] is False
    assert not accepts(found["properties"]["record"], "everything")
    assert not accepts(found["properties"]["steps"], True)
    assert not accepts(found["properties"]["controls"], 1)
    assert all(one["description"] for one in found["properties"].values())
    assert not {"config", "save-config", "dry-run", "plugin"} & set(found["properties"])


def rules(found: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """What the schema says of a key; nothing: it is refused."""
    patterns = [rule for pattern, rule in found["patternProperties"].items() if re.search(pattern, key)]
    named = [found["properties"][rule["$ref"].removeprefix("#/properties/")] for rule in patterns]
    return named + [rule for name, rule in found["properties"].items() if name == key]


@pytest.mark.parametrize(
    "key", ["lr-warmup", "lr_warmup", "eval_every", "methods", "lr__warmup", "lrwarmup", "_methods"]
)
def test_it_takes_dashes_and_underscores_as_the_reader_does(tmp_path: Path, key: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"{key}: 7\n" if key != "methods" else "methods: clip\n")
    read = call("run", "--config", str(file), "--dry-run", "--seeds", "1", "--out", str(tmp_path / "r"))
    assert len(rules(schema(), key)) == (1 if read.exit_code == 0 else 0), read.output


def test_every_flag_with_dashes_may_have_underscores() -> None:
    found = schema()
    for flag, rule in found["properties"].items():
        assert rules(found, flag) == [rule]
        assert rules(found, flag.replace("-", "_")) == [rule]


def test_its_defaults_can_be_run(tmp_path: Path) -> None:
    values = {key: one["default"] for key, one in schema()["properties"].items() if one.get("default", "") != ""}
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump(values | {"out": str(tmp_path / "r"), "seeds": 1, "methods": "clip"}))
    shown = call("run", "--config", str(file), "--dry-run")
    assert shown.exit_code == 0, shown.output


def test_it_is_written_to_a_file(tmp_path: Path) -> None:
    shown = call("lab", "schema", "--out", str(tmp_path / "s.json"))
    assert shown.stdout.strip() == str(tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text()) == schema()

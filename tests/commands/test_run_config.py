"""`run --config` and `--save-config`."""

import re
from pathlib import Path

import pytest
from command_line import call, refused

TRACKERS = (Path(__file__).parents[2] / "docs" / "trackers.md").read_text(encoding="utf-8")


def test_the_saved_configuration_plans_the_same_cells_and_a_typed_flag_wins(finished: Path) -> None:
    saved = str(finished.parent / "saved.yaml")
    same = call("run", "--config", saved, "--dry-run")
    assert "3 cells, 0 to run" in same.output
    more = call("run", "--config", saved, "--dry-run", "--staleness", "1,2")
    assert "5 cells, 2 to run" in more.output, more.output


def test_an_empty_name_is_not_the_default_grid() -> None:
    assert refused("run", "--config", "", "--dry-run") == "error: --config is empty: name a preset or a YAML file\n"


def test_off_is_a_word_although_yaml_reads_it_as_false(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("record: basic\nstack: off\n")
    result = call("run", "--config", str(path), "--dry-run")
    assert result.exit_code == 0, result.output
    path.write_text("methods: off\n")
    assert "--methods does not take False" in call("run", "--config", str(path), "--dry-run").stderr


def test_underscores_are_read_as_dashes_and_no_flag_twice(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("methods: clip\nlr_warmup: 7\nresponses: 4\n")
    saved = tmp_path / "saved.yaml"
    shown = call("run", "--config", str(path), "--dry-run", "--save-config", str(saved))
    assert shown.exit_code == 0, shown.output
    assert {"lr-warmup: 7", "responses: 4"} <= set(saved.read_text().splitlines())
    path.write_text("lr_warmup: 7\nlr-warmup: 5\n")
    assert "lr-warmup is there twice" in refused("run", "--config", str(path), "--dry-run")


@pytest.mark.parametrize("key", re.findall(r"In a configuration file the key is `([^`]+)`", TRACKERS))
def test_the_key_that_the_page_on_trackers_names_is_one(tmp_path: Path, key: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"{key}: nonsense\n")
    assert "unknown tracker 'nonsense'" in call("run", "--config", str(path), "--out", str(tmp_path / "out")).stderr
    assert "-" in key  # as --save-config and the schema write it


def test_yaml_lists_make_axes(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("methods: [clip, tis]\nstaleness: [1, 2]\nseeds: [4]\nlr: [1e-4, 3e-4]\ncontrols: false\n")
    result = call("run", "--config", str(path), "--dry-run", "--cells", "--steps", "5", "--prompts", "2")
    assert "8 cells" in result.output, result.output
    assert "seed 4" in result.output

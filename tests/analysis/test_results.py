import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from vcpo_bench import records
from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError
from vcpo_bench.records.steps import DIAGNOSTICS


def cell_folders(folder: Path) -> list[Path]:
    return sorted((folder / records.CELLS).iterdir())


def test_every_cell_and_every_row_is_there(tmp_path, make_results):
    results = load(make_results(tmp_path, seeds=(0, 1), steps=40))
    assert len(results.cells) == 2 * (2 * 2 + 3)
    assert {"key", "task", "method", "staleness", "lr", "seed", "status", "control", "partial"} <= set(results.cells)
    assert results.steps.groupby("key").size().eq(40).all()
    assert results.evals["step"].max() == 40
    assert results.lags.groupby("key")["trajectories"].sum().eq(40 * 128).all()
    assert results.samples.empty
    assert "log_weight" in results.samples
    assert results.problems == []
    assert results.notes == []
    assert results.cells.loc[results.cells["control"], "method"].eq("reinforce").all()


def test_columns_no_cell_recorded_are_present_and_empty(tmp_path, make_results):
    results = load(make_results(tmp_path, seeds=(0,), steps=20))
    assert DIAGNOSTICS.keys() <= set(results.steps)
    assert results.steps["token_ess_ratio"].isna().all()


def test_levels_may_differ_between_cells(tmp_path, make_results):
    make_results(tmp_path, methods=("vcpo",), lags=(1,), seeds=(0,), steps=20, controls=False, record="full")
    make_results(tmp_path, methods=("tis",), lags=(1,), seeds=(0,), steps=20, controls=False)
    results = load(tmp_path)
    known = results.steps.merge(results.cells[["key", "method"]], on="key").groupby("method")["token_ess_ratio"].count()
    assert known.to_dict() == {"tis": 0, "vcpo": 20}
    assert len(results.samples) == 2 * 128


@pytest.mark.parametrize("name", [records.STEPS_FILE, records.EVALS_FILE])
@pytest.mark.parametrize("damage", ["truncate", "remove", "wrong columns"])
def test_a_damaged_table_is_named_and_the_rest_is_read(tmp_path, make_results, name, damage):
    make_results(tmp_path, seeds=(0,), steps=20)
    victim = cell_folders(tmp_path)[0] / name
    if damage == "truncate":
        victim.write_bytes(victim.read_bytes()[:100])
    elif damage == "remove":
        victim.unlink()
    else:
        pq.write_table(pq.read_table(victim).drop_columns(["step"]), victim)
    results = load(tmp_path)
    table = results.steps if name == records.STEPS_FILE else results.evals
    assert table["key"].nunique() == len(results.cells) - 1
    assert len(results.problems) == 1
    assert str(results.problems[0]).startswith(str(victim))


@pytest.mark.parametrize("content", ["", "{", "[1]", "{}", '{"config": {"task": "chain"}, "status": "completed"}'])
def test_a_damaged_cell_file_is_named_and_set_aside(tmp_path, make_results, content):
    make_results(tmp_path, seeds=(0,), steps=20)
    victim = cell_folders(tmp_path)[0] / records.CELL_FILE
    victim.write_text(content)
    results = load(tmp_path)
    assert len(results.cells) == 6
    assert len(results.problems) == 1
    assert str(results.problems[0]).startswith(str(victim))


def test_an_error_cell_without_tables_is_not_a_problem(tmp_path, make_results):
    make_results(tmp_path, seeds=(0,), steps=20, shapes={"tis": "error"})
    for path in cell_folders(tmp_path):
        if "-tis-" in path.name:
            (path / records.STEPS_FILE).unlink()
    results = load(tmp_path)
    assert results.steps["key"].nunique() == 5
    assert results.problems == []


def test_a_damaged_grid_file_leaves_the_cells_readable(tmp_path, make_results):
    make_results(tmp_path, seeds=(0,), steps=20)
    (tmp_path / records.GRID_FILE).write_text("nonsense")
    results = load(tmp_path)
    assert not results.cells["control"].any()
    assert "controls" in results.problems[0].what


def test_partial_cells_come_on_request_from_the_newest_checkpoint(tmp_path, make_results):
    make_results(tmp_path, seeds=(0,), steps=20, partial=("tis",))
    assert not load(tmp_path).cells["method"].eq("tis").any()
    running = next(path for path in cell_folders(tmp_path) if "-tis-" in path.name)
    newer = running / "checkpoint-000100"
    shutil.copytree(running / "checkpoint-000050", newer)
    (running / "checkpoint-000200").mkdir()  # killed while writing: no tables yet
    results = load(tmp_path, include_partial=True)
    rows = results.cells[results.cells["method"] == "tis"]
    assert rows["partial"].all()
    assert rows["status"].eq("partial").all()
    assert str(newer) in set(rows["path"])
    assert any("still running" in note.text for note in results.notes)
    assert set(rows["key"]) <= set(results.steps["key"])


def test_an_ended_cell_wins_over_its_own_remains(tmp_path, make_results):
    make_results(tmp_path, methods=("tis",), lags=(1,), seeds=(0,), steps=20, controls=False)
    make_results(tmp_path, methods=("tis",), lags=(1,), seeds=(0,), steps=20, controls=False, partial=("tis",))
    results = load(tmp_path, include_partial=True)
    assert results.cells["status"].tolist() == ["completed"]


def test_a_mix_of_rules_versions_is_said(tmp_path, make_results):
    make_results(tmp_path, methods=("vcpo",), seeds=(0,), steps=20, controls=False)
    make_results(tmp_path, methods=("tis",), seeds=(0,), steps=20, controls=False, rules_version="0.9")
    assert any("not comparable" in note.text and "0.9" in note.text for note in load(tmp_path).notes)


def test_results_of_an_edited_plugin_are_said_not_to_compare(tmp_path, make_results):
    make_results(tmp_path, methods=("mine",), seeds=(0,), steps=20, controls=False)
    assert not any("mine" in note.text for note in load(tmp_path).notes)
    for file, digest in zip(sorted(tmp_path.rglob("cell.json")), ("aa", "bb"), strict=False):
        facts = json.loads(file.read_text())
        file.write_text(json.dumps(facts | {"config": facts["config"] | {"plugins": digest}}))
    assert [note.text for note in load(tmp_path).notes] == [
        "mine ran in more than one version of its code: not comparable."
    ]


def test_a_setting_that_older_cells_do_not_name_is_its_usual_value(tmp_path, make_results):
    make_results(tmp_path, methods=("tis",), seeds=(0,), steps=20, controls=False)
    file = min(tmp_path.rglob("cell.json"))
    facts = json.loads(file.read_text())
    for decay, said in (
        (0.0, []),
        (0.1, ["Cells differ in weight_decay (0.0, 0.1), which only the comparison of methods keeps apart."]),
    ):
        file.write_text(json.dumps(facts | {"config": facts["config"] | {"weight_decay": decay}}))
        assert [note.text for note in load(tmp_path).notes] == said


def test_an_older_rules_version_is_said(tmp_path, make_results):
    make_results(tmp_path, methods=("tis",), seeds=(0,), steps=20, controls=False, rules_version="0.9")
    assert any("rules version 0.9" in note.text for note in load(tmp_path).notes)


def test_two_versions_of_one_method_are_said(tmp_path, make_results):
    make_results(tmp_path, seeds=(0,), steps=20)
    path = next(one for one in cell_folders(tmp_path) if "-vcpo-" in one.name) / records.CELL_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"method_version": 2}))
    assert any("vcpo" in note.text for note in load(tmp_path).notes)


def test_settings_that_no_table_keeps_apart_are_said(tmp_path, make_results):
    for steps in (20, 30):
        make_results(tmp_path, methods=("tis",), seeds=(0,), steps=steps, controls=False)
    (note,) = load(tmp_path).notes
    assert note.text == "Cells differ in steps (20, 30), which only the comparison of methods keeps apart."


def test_several_folders_are_pooled_and_repeats_dropped(tmp_path, make_results):
    first = make_results(tmp_path / "a", methods=("vcpo",), lags=(1,), seeds=(0,), steps=20)
    second = make_results(tmp_path / "b", methods=("vcpo", "tis"), lags=(1,), seeds=(0,), steps=20)
    results = load([first, second])
    assert results.cells["key"].is_unique
    assert len(results.cells) == 4
    assert not results.problems
    assert results.notes[0].text == "3 cells are in more than one folder; each is read from the first."
    assert "index" not in results.cells


def test_trajectories_come_cell_by_cell_and_damage_is_named(tmp_path, make_results):
    make_results(tmp_path, lags=(1,), seeds=(0,), steps=20, controls=False, record="full")
    results = load(tmp_path)
    parts = dict(results.samples_by_cell())
    assert set(parts) == set(results.cells["key"])
    assert sum(map(len, parts.values())) == len(results.samples)
    victim = cell_folders(tmp_path)[0] / records.SAMPLES_FILE
    victim.write_bytes(b"nonsense")
    damaged = load(tmp_path)
    assert len(list(damaged.samples_by_cell())) == len(list(damaged.samples_by_cell())) == 1
    assert len(damaged.problems) == 1
    assert str(damaged.problems[0]).startswith(str(victim))


def test_select_keeps_tables_and_cells_together(tmp_path, make_results):
    results = load(make_results(tmp_path, seeds=(0,), steps=20))
    assert len(results.steps) == 7 * 20
    keys = results.cells["key"].head(2)
    chosen = results.select(keys)
    assert set(chosen.steps["key"]) == set(keys) == set(chosen.cells["key"]) == set(chosen.evals["key"])
    assert list(chosen.steps) == list(results.steps)
    assert list(chosen.cells) == list(results.cells)
    assert list(chosen.steps.index) == list(range(2 * 20))


def test_a_folder_without_results_is_one_clear_sentence(tmp_path):
    with pytest.raises(UsageError, match=re.escape(str(tmp_path))):
        load(tmp_path)
    (tmp_path / records.CELLS).mkdir()
    with pytest.raises(UsageError, match="no finished cell"):
        load(tmp_path)


def test_cells_of_another_trainer_are_never_pooled_with_our_own(tmp_path, make_results):
    folder = make_results(tmp_path, methods=("vcpo",), lags=(1,), seeds=(0, 1), steps=20, controls=False)
    other = cell_folders(folder)[0] / records.CELL_FILE
    facts = json.loads(other.read_text())
    facts["config"]["trainer"] = "trl(processes=2)"
    other.write_text(json.dumps(facts))
    cells = load(folder).cells
    assert sorted(set(cells["task"])) == ["chain", "chain in trl(processes=2)"]
    assert (cells["task"] != "chain").sum() == 1
    assert load(folder).notes == []

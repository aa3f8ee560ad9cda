"""`cell.json` and tables with values of the wrong kind: one documented error, which names the cell."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.records.cell_file import read_cell_file
from vcpo_bench.records.steps import STEPS
from vcpo_bench.records.table_file import read_table_file

CONFIG = {"task": "chain", "method": "clip", "regime": "fifo", "staleness": 1, "lr": 3e-4, "seed": 0, "steps": 5}
FACTS = {"key": "a", "status": "completed", "config": CONFIG, "steps_done": 5, "error": None, "seconds": 1}


def written(folder: Path, facts: Any) -> Path:
    path = folder / "a" / "cell.json"
    path.parent.mkdir()
    path.write_text(json.dumps(facts))
    return path


@pytest.mark.parametrize("more", [{}, {"error": "x", "control": True, "provenance": {}}, {"unknown": [1]}])
def test_what_earlier_versions_wrote_is_read(tmp_path: Path, more: dict[str, Any]) -> None:
    assert read_cell_file(written(tmp_path, FACTS | more))["config"] == CONFIG


@pytest.mark.parametrize(
    "wrong",
    [{"steps_done": value} for value in ("5", -1, 5.0, True, [])]
    + [{"warnings": value} for value in ("x", [1], {})]
    + [{"seconds": value} for value in ("1", True, float("nan"), float("inf"), 10**400)]
    + [{"error": 3}, {"reason": {}}, {"control": 1}, {"provenance": "x"}, {"rules_version": 1.0}]
    + [{"status": "done"}, {"status": None}, {"status": ["error"]}, {"key": "b"}, {"key": None}, {"config": []}]
    + [{"config": CONFIG | {"lr": value}} for value in ("3e-4", None, float("nan"), [1])]
    + [{"config": CONFIG | {name: value}} for name in ("staleness", "seed", "prompts") for value in ("1", 1.5, -1)]
    + [{"config": CONFIG | {name: value}} for name in ("task", "method", "record") for value in (1, None, ["x"])]
    + [{"config": {name: value for name, value in CONFIG.items() if name != "lr"}}],
)
def test_a_value_of_the_wrong_kind_is_one_error_that_names_the_cell(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = written(tmp_path, FACTS | wrong)
    with pytest.raises(DamagedResultError) as raised:
        read_cell_file(path)
    assert str(raised.value).startswith(f"{path} ")
    assert "\n" not in str(raised.value)
    assert len(raised.value.what) < 200


def test_the_cell_of_a_checkpoint_is_that_of_its_partial_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a.partial" / "checkpoint-00000003"
    folder.mkdir(parents=True)
    (folder / "cell.json").write_text(json.dumps({name: value for name, value in FACTS.items() if name != "status"}))
    assert read_cell_file(folder / "cell.json", ended=False)["key"] == "a"


@pytest.mark.parametrize("values", [["1"], [True], [[1]], [None]])
def test_a_column_of_another_kind_is_damage(tmp_path: Path, values: list[Any]) -> None:
    path = tmp_path / "steps.parquet"
    pq.write_table(pa.table({"step": [0], "ess_ratio": values, "mine": ["x"]}), path)
    if values == [None]:
        assert read_table_file(path, STEPS).num_rows == 1
        return
    with pytest.raises(DamagedResultError, match="in the column 'ess_ratio', not float"):
        read_table_file(path, STEPS)

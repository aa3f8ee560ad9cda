"""A task of one's own, as `new task` writes it: run as a plug-in or an entry point, and part of its cells."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pool_jobs import Log

from vcpo_bench.bench.cells.grid import PlannedCell, plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.policies.warm_start import TINY, WarmStart, save_warm_start
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.running.options import RunOptions
from vcpo_bench.bench.running.run_grid import run_grid
from vcpo_bench.bench.tasks import TASKS, token_task
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.naming.template import write_new
from vcpo_bench.records.settings import CellSettings

TASK = "written-task(n=3)"


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Path]:
    """The file of `new task written-task`, loaded."""
    file, _ = write_new(TASKS, "written-task", tmp_path / "mine")
    load_plugin(file)
    yield file
    TASKS.forget()


def planned(folder: Path) -> PlannedCell:
    """One small cell of the plug-in task, from an untrained policy."""
    start = folder / "start.safetensors"
    task = token_task(TASK)
    if not start.exists():
        save_warm_start(
            WarmStart(task.canonical, TINY.untrained(task, 0), seed=0, steps=0, reward=0.0, greedy=0.0), start
        )
    settings = CellSettings(steps=3, prompts=2, responses=4)
    (cell,) = plan_grid(GridSpec(("vcpo",), (2,), (0,), (TASK,), settings=settings, controls=False, start=start))
    return cell


def test_workers_load_the_plugin_and_train_on_its_task(tmp_path: Path, plugin: Path) -> None:
    cell = planned(tmp_path)
    log = Log()
    assert run_grid([cell], RunOptions(tmp_path / "out", 1, plugins=(plugin,)), log) == 0
    facts = json.loads((tmp_path / "out" / "cells" / cell.key / "cell.json").read_text())
    assert (facts["status"], facts["config"]["task"]) == ("completed", TASK)
    assert facts["config"]["plugins"] == TASKS.get("written-task").source != ""


def test_an_edited_task_is_another_cell_and_a_running_grid_notices(tmp_path: Path, plugin: Path) -> None:
    before = planned(tmp_path)
    plugin.write_text(plugin.read_text().replace(".all(1).double()", ".double().mean(1)"))
    load_plugin(plugin)
    after = planned(tmp_path)
    assert before.key != after.key
    assert replace(after.config, plugins=before.config.plugins) == before.config
    events: list[tuple] = []
    assert run_cell(before, tmp_path, 0, lambda *event: events.append(event)) == "error"
    assert "a plug-in of this cell was edited" in events[-1][-1]


def test_without_a_start_policy_the_command_that_makes_one_is_named(plugin: Path) -> None:
    (cell,) = plan_grid(GridSpec(("vcpo",), (0,), (0,), (TASK,), settings=CellSettings(steps=2), controls=False))
    events: list[tuple] = []
    assert run_cell(cell, plugin.parent, 0, lambda *event: events.append(event)) == "error"
    assert f"vcpo-bench lab warmup --task '{TASK}'" in events[-1][-1]


def test_the_task_in_the_docs_works_as_written(tmp_path: Path) -> None:
    docs = Path(__file__).parents[3] / "docs" / "tasks.md"
    (tmp_path / "double.py").write_text(docs.read_text().partition("```python\n")[2].partition("```")[0])
    try:
        assert load_plugin(tmp_path / "double.py") == ["double"]
        task = token_task("double(2)")
        assert task.reward(*task.demonstrations(0, 0, 50)).tolist() == [1] * 50
        assert task.held_out().max() == 4
    finally:
        TASKS.forget()


SHOUT = '''
from dataclasses import dataclass
from typing import ClassVar
from vcpo_bench.bench.tasks.text import Item
from vcpo_bench.bench.tasks.text.items.data_task import DataTask
from vcpo_bench.bench.tasks.text.items.rows import Row

@dataclass(frozen=True, kw_only=True)
class Shout(DataTask):
    """Answer in capitals."""

    name = "shout"
    summary = "answer in capitals"
    columns: ClassVar[tuple[str, ...]] = ("word",)
    max_response = 8

    @staticmethod
    def read(row: Row) -> Item:
        return Item(row["word"], row["word"].upper(), {})

    def score(self, item: Item, text: str) -> float:
        return float(text == item.answer)

    def demonstration(self, item: Item) -> str:
        return item.answer
'''


def test_a_text_task_of_ones_own_has_its_sample_beside_it(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "shout.jsonl").write_text("".join(f'{{"word": "w{n}"}}\n' for n in range(10)))
    (tmp_path / "shout.py").write_text(SHOUT)
    try:
        load_plugin(tmp_path / "shout.py")
        task = text_task("shout(sample)")
        assert task.canonical == "shout(data=sample)"
        item = task.item(0, 0, 0)
        assert task.score(item, task.demonstration(item)) == 1
        with pytest.raises(UsageError, match="shout: has no data set on the hub; give shout"):
            text_task("shout")
    finally:
        TASKS.forget()

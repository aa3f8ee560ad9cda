"""What scoring with lm-eval needs besides lm-eval: documents, checkpoints, the table of scores.

lm-eval itself is run by `.ci/integrations.d/evals.sh`.
"""

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import torch
from command_line import refused

from vcpo_bench import records
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.outside.lm_eval import text_documents
from vcpo_bench.bench.outside.lm_eval.checkpoints import find_checkpoints, load_trained
from vcpo_bench.bench.outside.lm_eval.evaluate import Scoring, evaluate_cells, write_scores
from vcpo_bench.bench.outside.lm_eval.own_tasks import own_names, own_tasks
from vcpo_bench.bench.policies.warm_start import load_warm_start
from vcpo_bench.bench.running.cell.run_cell import run_cell
from vcpo_bench.bench.tasks import TASKS, token_task
from vcpo_bench.bench.tasks.text import text_task
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.plugins import load_plugin
from vcpo_bench.records.settings import CellSettings

SPEC = GridSpec(
    ("clip",), (1,), (0, 1), ("walk-eos",), settings=CellSettings(steps=4, prompts=2, responses=4), controls=False
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cell that kept its checkpoints after 2 and 4 updates, and one that kept none."""
    out = tmp_path_factory.mktemp("scored") / "run"
    folder = ResultsFolder(out)
    for every, cell in zip((2, 0), plan_grid(SPEC), strict=True):
        run_cell(cell, folder.cells, every, lambda *event: None)
    return out


@pytest.mark.parametrize("expression", ["arithmetic", "countdown", "gsm8k(data=sample)"])
def test_the_score_of_a_response_in_words_is_the_one_of_the_task(expression):
    task = text_task(expression)
    for item in task.items("held_out")[:5]:
        document = {"prompt": item.prompt, "answer": item.answer, "meta": json.dumps(item.meta)}
        document["expression"] = task.canonical
        assert text_documents.score(document, [task.demonstration(item)]) == {"reward": 1.0}
        assert text_documents.score(document, [["nothing", task.demonstration(item)]]) == {
            "reward": 0.5,
            "any_right": 1.0,
        }


@pytest.mark.parametrize("chat", [False, True])
def test_documents_without_a_chat_template_ask_with_the_examples_and_the_system_prompt(chat, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(Dataset=SimpleNamespace(from_list=list)))
    task = text_task("quiz(shots=2,system=Add.)")
    rows = text_documents.documents("quiz", task.canonical, chat)["test"]
    items = task.items("held_out")
    assert [row["asked"] for row in rows] == [item.prompt if chat else task.plain(item) for item in items]
    assert rows[0]["asked"].startswith("Add.\n") != chat


def test_checkpoints_are_found_and_hold_the_policy(results):
    found = find_checkpoints([results], "all")
    assert [one.step for one in found] == [2, 4]
    assert {one.results for one in found} == {results.resolve()}
    cell = found[0].folder.parents[1]
    assert [one.step for one in find_checkpoints([cell], "last")] == [4]
    assert [one.step for one in find_checkpoints([cell], "2")] == [2]
    (cell_of_two,) = (one for one in plan_grid(SPEC) if one.key == cell.name)
    trainer = build_trainer(cell_of_two.config)
    trainer.load(found[1].folder)
    loaded = load_warm_start(token_task("walk-eos"))
    load_trained(found[1], loaded)
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), trainer.policy.parameters(), strict=True))
    start = load_warm_start(token_task("walk-eos"))
    assert not torch.equal(loaded.head.weight, start.head.weight)


def test_what_cannot_be_scored_is_one_line(results, tmp_path):
    kept = find_checkpoints([results], "last")[0].folder.parents[1]
    (bare,) = (path for path in (results / "cells").iterdir() if path.name != kept.name)
    for place, which, problem in (
        (bare, "last", "no checkpoint was kept; run them with --keep-checkpoints every=N"),
        (kept, "3", "no checkpoint after 3 updates; there are 2, 4"),
        (kept, "first", "must be last, all, or a number of updates"),
        (tmp_path, "last", "neither an ended cell nor a results folder"),
    ):
        with pytest.raises(UsageError, match=problem):
            find_checkpoints([place], which)
    damaged = tmp_path / "state.safetensors"
    damaged.write_bytes(b"no tensors")
    checkpoint = find_checkpoints([kept], "last")[0]
    moved = dataclasses.replace(checkpoint, folder=tmp_path)
    with pytest.raises(UsageError, match=r"cannot be read .*score another checkpoint"):
        load_trained(moved, load_warm_start(token_task("walk-eos")))


def test_checkpoints_of_another_trainer_are_named_as_models(results, tmp_path):
    kept = find_checkpoints([results], "last")[0].folder.parents[1]
    other = Path(shutil.copytree(kept, tmp_path / "cells" / kept.name))
    facts = json.loads((other / "cell.json").read_text())
    facts = {name: value for name, value in facts.items() if name not in ("files", "checksum")}
    facts["config"]["trainer"] = "trl"
    (other / "cell.json").write_text(json.dumps(facts))
    with pytest.raises(
        UsageError, match=rf"run lm_eval --model hf --model_args pretrained={other}/checkpoints/00000004"
    ):
        find_checkpoints([other], "last")


def test_cells_of_the_built_in_policy_are_refused_with_the_place_of_their_rewards(results):
    assert "lm-eval scores language models" in refused("lab", "eval", str(results))
    with pytest.raises(UsageError, match="--limit 0"):
        next(evaluate_cells([results], "last", Scoring(limit=0)))


def test_scoring_again_replaces_the_rows_of_that_task_only(tmp_path):
    def row(step: int, task: str, value: float) -> dict:
        empty = dict.fromkeys(column.name for column in records.LM_EVAL_SCORES)
        return {**empty, "step": step, "task": task, "metric": "reward", "filter": "none", "value": value}

    write_scores(tmp_path, "key", [row(10, "a", 0.1), row(10, "b", 0.2), row(20, "a", 0.3)])
    path = write_scores(tmp_path, "key", [row(10, "a", 0.9)])
    assert path == tmp_path / "scores" / "key.parquet"
    table = pq.read_table(path).to_pylist()
    assert [(one["step"], one["task"], one["value"]) for one in table] == [
        (10, "a", 0.9),
        (10, "b", 0.2),
        (20, "a", 0.3),
    ]
    path.write_bytes(b"damaged")
    with pytest.raises(UsageError, match="move it away"):
        write_scores(tmp_path, "key", [row(10, "a", 0.9)])


def test_every_text_task_is_a_task_of_lm_eval_without_a_file_to_write(tmp_path):
    asked_at_once = [name for name, kind in TASKS.kinds.items() if kind.needs_language_model and not kind.in_turns]
    assert {name for task in asked_at_once for name in own_names(task)} == set(own_tasks())
    assert not {"vcpo-chain", "vcpo-calc-text"} & set(own_tasks())
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from dataclasses import dataclass\n\nfrom vcpo_bench.bench.tasks.text.arithmetic import Arithmetic\n\n\n"
        "@dataclass(frozen=True, kw_only=True)\nclass Sums(Arithmetic):\n"
        '    name = "sums"\n    summary = "sums"\n'
    )
    load_plugin(plugin)
    try:
        mine = own_tasks()["vcpo-sums-sampled"]
        assert (mine["process_results"], mine["repeats"]) == (text_documents.score, 4)
    finally:
        TASKS.forget()

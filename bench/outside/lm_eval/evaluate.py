"""Scores checkpoints with `lm_eval.simple_evaluate`, offline unless the user allows the network."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vcpo_bench.bench.cells.parquet_table import arrow_schema
from vcpo_bench.bench.cells.results_folder import WRITER
from vcpo_bench.bench.outside.lm_eval.checkpoints import KeptCheckpoint, find_checkpoints
from vcpo_bench.bench.outside.lm_eval.own_tasks import Config, own_names, own_tasks
from vcpo_bench.errors import DamagedResultError, UsageError, how_to_install
from vcpo_bench.files.claims import Claim
from vcpo_bench.files.folders import made, refuse_link
from vcpo_bench.files.parquet import read_parquet, write_parquet
from vcpo_bench.progress import track
from vcpo_bench.records import LM_EVAL_SCORES, SCORES_FOLDER

OWN = "own"
"""Stands for the cell's own task, greedy and sampled."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How to score checkpoints.

    Attributes:
        tasks: Names of lm-eval tasks, groups or tags; `own` stands for the cell's own task, greedy and sampled.
        limit: Largest number of documents per task; None: all.
        folder: Folder with YAML files of further tasks.
        model: Folder or name of the language model that training started from.
        device: Its device.
    """

    tasks: Sequence[str] = (OWN,)
    limit: int | None = None
    folder: Path | None = None
    model: str = ""
    device: str = "cpu"


def evaluate_cells(cells: Sequence[Path], which: str, scoring: Scoring) -> Iterator[tuple[KeptCheckpoint, list[Score]]]:
    """Score checkpoints (`which`: `last`, `all` or a number of updates) one after another and write their scores.

    Yields:
        Each checkpoint with its scores, once they are on disk.

    Raises:
        UsageError: lm-eval is missing, or a cell, checkpoint, model or task is missing or does not fit.
    """
    checkpoints = find_checkpoints(cells, which)
    if scoring.limit is not None and scoring.limit < 1:
        raise UsageError(f"--limit {scoring.limit}: at least one document is needed")
    for checkpoint in checkpoints:
        if not checkpoint.config.model:
            raise UsageError(
                f"{checkpoint.key}: trained the built-in policy, and lm-eval scores language models; the rewards of "
                "its held-out prompts are in evals.parquet"
            )
    _prepare_environment()
    try:
        from lm_eval import simple_evaluate  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise UsageError(f"lm-eval cannot be loaded ({error}): {how_to_install('eval')}") from error
    from vcpo_bench.bench.outside.lm_eval.hf_model import open_checkpoint, open_task_of

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    for checkpoint in track(checkpoints, "scoring checkpoints", len(checkpoints)):
        tasks = list(dict.fromkeys(name for task in scoring.tasks for name in _names(task, checkpoint)))
        about = {"cell_task": checkpoint.config.task, "chat": open_task_of(checkpoint, scoring.model).chat}
        specs, manager = find_tasks(tasks, scoring.folder, about)
        model = open_checkpoint(checkpoint, scoring.model, scoring.device)
        try:
            with _quiet():
                results = simple_evaluate(
                    model=model,
                    tasks=specs,
                    task_manager=manager,
                    limit=scoring.limit,
                    bootstrap_iters=1000,
                    log_samples=False,
                    apply_chat_template=model.chat,
                )
        except UsageError:
            raise
        except (OSError, ValueError, AssertionError) as error:  # what lm-eval raises for tasks it cannot run here
            raise _refusal(tasks, error) from error
        scores = scores_of(results, checkpoint.step)
        write_scores(checkpoint.results, checkpoint.key, scores)
        yield checkpoint, scores


def _prepare_environment() -> None:
    """Before lm-eval is imported: no worker processes and no network, unless the user sets otherwise."""
    for name in ("LMEVAL_DISABLE_MULTIPROC", "HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_EVALUATE_OFFLINE"):
        os.environ.setdefault(name, "1")


def _refusal(tasks: Sequence[str], error: Exception) -> UsageError:
    problem = " ".join(str(error).split())[:300] or type(error).__name__
    hub = "; to let it download from the hub, set HF_HUB_OFFLINE=0 HF_DATASETS_OFFLINE=0"
    return UsageError(
        f"--tasks {','.join(tasks)}: lm-eval failed ({problem}){hub if isinstance(error, OSError) else ''}"
    )


def _names(task: str, checkpoint: KeptCheckpoint) -> list[str]:
    if task != OWN:
        return [task]
    trained_on = checkpoint.config.task
    if checkpoint.config.parts.task.in_turns:
        raise UsageError(f"--tasks own: {trained_on} has an environment, and lm-eval asks everything in one turn")
    return own_names(trained_on)


def find_tasks(names: Sequence[str], folder: Path | None, metadata: dict[str, Any]) -> tuple[list[str | Config], Any]:
    """What `simple_evaluate` takes for task names; lm-eval's own index is read only when a name is nowhere else.

    Args:
        names: Our tasks, tasks of `folder`, or tasks, groups and tags of lm-eval.
        folder: Folder with YAML files of further tasks.
        metadata: Passed to the tasks.

    Returns:
        Each name, or its configuration if it is one of our tasks; and the `TaskManager`.

    Raises:
        UsageError: A name is unknown.
    """
    from lm_eval.tasks import TaskManager

    ours = own_tasks()
    for defaults in (False, True):
        manager = TaskManager(include_path=folder, include_defaults=defaults, metadata=metadata)
        unknown = [name for name in names if name not in ours and name not in manager.all_tasks]
        if not unknown:
            return [ours.get(name, name) for name in names], manager
    known = [*ours, *TaskManager(include_path=folder, include_defaults=False).all_tasks]
    raise UsageError(f"--tasks {unknown[0]}: lm-eval has no such task; besides its own there are {', '.join(known)}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Progress bars on a terminal only, and no description of the machine, which takes `simple_evaluate` seconds."""
    from lm_eval import evaluator  # pyright: ignore[reportAttributeAccessIssue]

    kept = evaluator.add_env_info, evaluator.get_git_commit_hash
    evaluator.add_env_info, evaluator.get_git_commit_hash = (lambda results: None), (lambda: None)
    try:
        with nullcontext() if sys.stderr.isatty() else redirect_stderr(io.StringIO()):
            yield
    finally:
        evaluator.add_env_info, evaluator.get_git_commit_hash = kept


def scores_of(results: Any, step: int) -> list[Score]:
    """Results of `simple_evaluate` as rows of `records.LM_EVAL_SCORES`."""
    from importlib.metadata import version

    scores = []
    for task, values in results["results"].items():
        for name, value in values.items():
            metric, _, chosen = name.partition(",")
            if not chosen or metric.endswith("_stderr") or not isinstance(value, (int, float)):
                continue
            stderr = values.get(f"{metric}_stderr,{chosen}")
            scores.append(
                {
                    "step": step,
                    "task": task,
                    "task_version": str(results["versions"].get(task, "")),
                    "metric": metric,
                    "filter": chosen,
                    "value": float(value),
                    "stderr": float(stderr) if isinstance(stderr, (int, float)) else None,
                    "higher_is_better": results["higher_is_better"].get(task, {}).get(metric),
                    "n": results["n-samples"].get(task, {}).get("effective"),
                    "shots": results["n-shot"].get(task, 0),
                    "lm_eval": version("lm_eval"),
                }
            )
    return scores


Score = dict[str, Any]
"""A row of `records.LM_EVAL_SCORES`."""


def write_scores(results: Path, key: str, scores: Sequence[Score]) -> Path:
    """Add the scores of a cell, replacing those of the same checkpoint and task. The file is replaced atomically.

    Raises:
        UsageError: The file there cannot be read, or a link stands in for its folder.
    """
    folder = made(results, SCORES_FOLDER)
    path = folder / f"{key}.parquet"
    schema = arrow_schema(LM_EVAL_SCORES, "basic")
    new = {(score["step"], score["task"]) for score in scores}
    refuse_link(folder / WRITER)
    with Claim(folder / WRITER):
        try:
            old = list(read_parquet(path).to_pylist()) if path.exists() else []
        except (OSError, DamagedResultError) as error:
            raise UsageError(f"{path} cannot be read; move it away and score again") from error
        rows = [row for row in old if (row["step"], row["task"]) not in new] + list(scores)
        rows.sort(key=lambda row: (row["step"], row["task"], row["metric"], row["filter"]))
        write_parquet(path, pa.Table.from_pylist(rows, schema=schema), below=results)
    return path

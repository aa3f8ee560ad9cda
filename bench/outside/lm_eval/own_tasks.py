"""This project's tasks as tasks of lm-eval: two configurations for every text task, none to write."""

from __future__ import annotations

from typing import Any

from vcpo_bench.bench.outside.lm_eval import text_documents
from vcpo_bench.bench.tasks import TASKS
from vcpo_bench.naming.grammar import first_name

SAMPLES = 4
"""Responses to each document of a `-sampled` task."""

Config = dict[str, Any]
"""Configuration of an lm-eval task, as its YAML files hold it."""


def own_tasks() -> dict[str, Config]:
    """`vcpo-TASK` (greedy) and `vcpo-TASK-sampled` for every text task, those of plug-ins included, by name.

    Tasks with an environment are left out: a request of lm-eval is answered in one turn.
    """
    named = [name for name, kind in TASKS.kinds.items() if kind.needs_language_model and not kind.in_turns]
    configs = [config for task in named for config in (_greedy(task), _sampled(task))]
    return {config["task"]: config for config in configs}


def own_names(task: str) -> list[str]:
    """Names of the lm-eval tasks for a task expression."""
    name = first_name(task)
    return [f"vcpo-{name}", f"vcpo-{name}-sampled"]


def _greedy(task: str) -> Config:
    return _base(task) | {
        "task": own_names(task)[0],
        "generation_kwargs": {"until": [], "do_sample": False},
        "metric_list": [_mean("reward")],
    }


def _sampled(task: str) -> Config:
    return _base(task) | {
        "task": own_names(task)[1],
        "generation_kwargs": {"until": [], "do_sample": True, "temperature": 1.0, "top_p": 1.0, "top_k": 0},
        "repeats": SAMPLES,
        "filter_list": [{"name": "all", "filter": [{"function": "take_first_k", "k": SAMPLES}]}],
        "metric_list": [_mean("reward"), _mean("any_right")],
    }


def _base(task: str) -> Config:
    return {
        "custom_dataset": text_documents.documents,
        "process_results": text_documents.score,
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{asked}}",
        "doc_to_target": "{{answer}}",
        "target_delimiter": "",
        "num_fewshot": 0,
        "metadata": {"version": 1, "task": task},  # lm-eval hands these to `custom_dataset`
    }


def _mean(metric: str) -> Config:
    return {"metric": metric, "aggregation": "mean", "higher_is_better": True}

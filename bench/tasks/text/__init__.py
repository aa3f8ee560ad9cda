"""Tasks in words, for language models with a tokenizer: prompts, answers and scores are plain text."""

from vcpo_bench.bench.tasks.text.base import Item, Split, TextTask
from vcpo_bench.bench.tasks.text.registry import get_text_task, text_task_names, text_task_types

__all__ = ["Item", "Split", "TextTask", "get_text_task", "text_task_names", "text_task_types"]

"""Text tasks, for language models with a tokenizer: prompts, answers and scores are plain text."""

from vcpo_bench.bench.tasks.text.base import Item, Split, TextTask, text_task

__all__ = ["Item", "Split", "TextTask", "text_task"]

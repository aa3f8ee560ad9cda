"""A task in the tokens of a model remembers the items of recent prompts only, those of evaluations among them."""

import pytest
import torch

from vcpo_bench.bench.tasks.text import bound, text_task


class Characters:
    """Characters as tokens."""

    eos_token_id, pad_token_id, chat_template = 1, 0, None

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": [2 + ord(character) for character in text]}

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool | None = None) -> str:
        return "".join(chr(token - 2) for token in token_ids)

    def apply_chat_template(self, conversation: object, *, add_generation_prompt: bool, tokenize: bool) -> str:
        raise AssertionError("there is no template")


def test_what_was_just_asked_can_be_scored_however_many_prompts_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound, "_REMEMBERED", 12)
    task = bound.BoundTask(text_task("arithmetic"), Characters())
    silent = torch.ones(8, 1, dtype=torch.int64), torch.ones(8, 1, dtype=torch.bool)
    for batch in range(4):
        assert task.reward(task.held_out(8), *silent).tolist() == [0.0] * 8
        task.training_prompts(0, batch, 3)
    assert len(task._items) == 12

"""A task in words in the tokens of a model: what a trainer can use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vcpo_bench.bench.tasks import HELD_OUT, Demonstrations, Task
from vcpo_bench.bench.tasks.base import per_response
from vcpo_bench.bench.tasks.text import Item, TextTask
from vcpo_bench.errors import UsageError

_ROOM = 1.25  # prompts may be this much longer than the longest of those looked at
_PASSED_OVER = 2**32  # batches further on is the item that takes the place of one that is too long
_REMEMBERED = 2**18  # items whose rewards can still be asked for: more than any queue holds


class BoundTask(Task):
    """A `TextTask` bound to a tokenizer.

    Prompts are padded on the left to one length; a generated item that does not fit (none of those shipped makes one)
    is passed over. A prompt's tokens identify its item, so rewards may be asked for prompts of this object only.

    Args:
        text: The task in words.
        tokenizer: Of the model, with an end token.
        max_response: Longest response in tokens, end included; 0: what the task suggests.
        chat: Put prompts into the tokenizer's chat template, where it has one.

    Attributes:
        text: The task in words.
        tokenizer: Of the model.
        pad: The padding token.

    Raises:
        UsageError: A prompt is empty or begins with the padding token.
    """

    def __init__(self, text: TextTask, tokenizer: Any, max_response: int = 0, chat: bool = True) -> None:
        self.text, self.tokenizer = text, tokenizer
        self.max_response = max_response or text.max_response
        self.eos: int = tokenizer.eos_token_id
        self.pad: int = self.eos if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self._chat = chat and bool(tokenizer.chat_template)
        self._items: dict[bytes, Item] = {}
        longest = max(len(self._encode(item)) for split in ("held_out", "train") for item in self._some(split))
        self.prompt_length = math.ceil(_ROOM * longest)

    def _some(self, split: Any) -> Sequence[Item]:
        return self.text.items(split)

    @property
    def canonical(self) -> str:
        """The canonical expression of the task in words."""
        return self.text.canonical

    def stream(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        """Prompts of the items of that stream."""
        return self._prompts([self._item(seed, batch, index, purpose) for index in range(count)])

    def held_out(self, count: int = HELD_OUT) -> Tensor:
        """The first of the task's held-out items."""
        return self._prompts(self.text.items("held_out")[:count])

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """Scores of the decoded responses."""
        prompts = per_response(prompts, len(responses))
        scores = [
            self.text.score(self._items[prompt.numpy().tobytes()], self._decode(response[kept]))
            for prompt, response, kept in zip(prompts, responses, mask, strict=True)
        ]
        return torch.tensor(scores, dtype=torch.float64)

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Right answers with the end token.

        Raises:
            UsageError: One is longer than a response may be.
        """
        items = [self._item(seed, batch, index, "demonstrations") for index in range(count)]
        responses = torch.full((count, self.max_response), self.eos)
        mask = torch.zeros(count, self.max_response, dtype=torch.bool)
        for row, item in enumerate(items):
            tokens = [*self.tokenizer(self.text.demonstration(item), add_special_tokens=False)["input_ids"], self.eos]
            if len(tokens) > self.max_response:
                raise UsageError(
                    f"{self.canonical}: a demonstration has {len(tokens)} tokens, more than --max-response "
                    f"{self.max_response}; give at least {len(tokens)}"
                )
            responses[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = True
        return Demonstrations(self._prompts(items), responses, mask)

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """Prompt and response as text."""
        real = prompt[int((prompt != self.pad).int().argmax()) :]
        return f"{self.tokenizer.decode(real.tolist())} {self._decode(response[mask])}"

    def _item(self, seed: int, batch: int, index: int, purpose: str) -> Item:
        """The item at that place of the stream, or the next in its place that is short enough."""
        while len(self._encode(item := self.text.item(seed, batch, index, purpose))) > self.prompt_length:
            batch += _PASSED_OVER
        return item

    def _prompts(self, items: Sequence[Item]) -> Tensor:
        """Padded prompts [n, Lp]; their items are remembered."""
        prompts = torch.full((len(items), self.prompt_length), self.pad)
        for row, item in zip(prompts, items, strict=True):
            tokens = self._encode(item)
            row[len(row) - len(tokens) :] = torch.tensor(tokens)
            self._items[row.numpy().tobytes()] = item
        for old in list(self._items)[: max(0, len(self._items) - _REMEMBERED)]:
            del self._items[old]
        return prompts

    def _encode(self, item: Item) -> list[int]:
        if self._chat:
            turn = [{"role": "user", "content": item.prompt}]
            text = self.tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
            tokens: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            tokens = self.tokenizer(item.prompt)["input_ids"]
        if not tokens or tokens[0] == self.pad:
            raise UsageError(
                f"{self.canonical}: the prompt {item.prompt[:40]!r} is empty or begins with the padding token; give "
                "the tokenizer a pad_token of its own"
            )
        return tokens

    def _decode(self, tokens: Tensor) -> str:
        """Text of a response without its end token."""
        ids = tokens.tolist()
        shown = ids[:-1] if ids and ids[-1] == self.eos else ids
        text: str = self.tokenizer.decode(shown, clean_up_tokenization_spaces=False)
        return text

"""A text task in the tokens of a model, as a trainer sees it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vcpo_bench.bench.tasks.base import HELD_OUT, Demonstrations, Task, per_response
from vcpo_bench.bench.tasks.text.base import Item, TextTask
from vcpo_bench.bench.tasks.text.dialogue import BoundDialogue
from vcpo_bench.bench.tasks.text.tokenizer import Tokenizer
from vcpo_bench.errors import UsageError
from vcpo_bench.lazy_torch import Tensor, torch

_MARGIN = 1.25  # the longest prompt allowed, relative to the longest of the task's fixed items
_SKIPPED_BATCHES = 2**32  # how many batches further on the stream replaces an item that is too long
_REMEMBERED = 2**18  # items whose rewards can still be asked for: more than any queue holds


class BoundTask(Task):
    """A `TextTask` bound to a tokenizer.

    Prompts are padded on the left to one length; a generated item that does not fit is skipped (no task that ships
    generates one). A prompt's tokens identify its item, so rewards may be asked for prompts of this object only.

    Args:
        source: The text task.
        tokenizer: The model's tokenizer; it has an end token.
        max_response: Longest response in tokens, end token included; 0: what the task suggests.
        chat: Put prompts into the tokenizer's chat template, where it has one.

    Attributes:
        source: The text task.
        tokenizer: The model's tokenizer.
        pad: The padding token.
        chat: Whether prompts are in the chat template; a task whose prompts are continued never takes it.

    Raises:
        UsageError: A prompt is empty or begins with the padding token.
    """

    def __init__(self, source: TextTask, tokenizer: Tokenizer, max_response: int = 0, chat: bool = True) -> None:
        self.source, self.tokenizer = source, tokenizer
        self._max_response = max_response or source.max_response
        self._end = tokenizer.eos_token_id
        self.eos = self._end
        self.pad: int = self._end if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        self.chat = chat and bool(tokenizer.chat_template) and not source.continues
        self._environment = BoundDialogue(source.dialogue, tokenizer) if source.dialogue else None
        self._items: dict[bytes, Item] = {}
        fixed = [*source.items("held_out"), *source.items("train")]
        self._prompt_length = math.ceil(_MARGIN * max(len(self._encode(item)) for item in fixed))

    @property
    def prompt_length(self) -> int:
        """Tokens of every prompt, left padding included."""
        return self._prompt_length

    @property
    def max_response(self) -> int:
        """Longest response in tokens, end token included."""
        return self._max_response

    @property
    def canonical(self) -> str:
        """The canonical name of the text task."""
        return self.source.canonical

    @property
    def environment(self) -> BoundDialogue | None:
        """What answers the policy, where the text task is a dialogue."""
        return self._environment

    def stream(self, seed: int, purpose: str, batch: int, count: int) -> Tensor:
        """Prompts of the items of that stream."""
        return self._prompts([self._item(seed, batch, index, purpose) for index in range(count)])

    def held_out(self, count: int = HELD_OUT) -> Tensor:
        """The first of the task's held-out items."""
        return self._prompts(self.source.items("held_out")[:count])

    def item_of(self, prompt: Tensor) -> Item:
        """The item of a prompt [Lp] of this object."""
        return self._items[prompt.numpy().tobytes()]

    def reward(self, prompts: Tensor, responses: Tensor, mask: Tensor) -> Tensor:
        """Scores of the decoded responses; of a dialogue, of the turn that the policy ended itself, or 0."""
        prompts = per_response(prompts, len(responses))
        rows = zip(prompts, responses, mask, strict=True)
        return torch.tensor([self._score(*row) for row in rows], dtype=torch.float64)

    def _score(self, prompt: Tensor, response: Tensor, mask: Tensor) -> float:
        said = response[mask]
        if self._environment is not None:
            last = int(mask.nonzero().max())
            if int(response[last]) != self._end:
                return 0.0
            heard = (~mask[:last]).nonzero()
            said = response[int(heard.max()) + 1 if len(heard) else 0 : last + 1]
        return self.source.score(self.item_of(prompt), self._decode(said))

    def demonstrations(self, seed: int, batch: int, count: int) -> Demonstrations:
        """Correct answers with the end token; of a dialogue, after the calls that the task makes.

        Raises:
            UsageError: One is longer than a response may be.
        """
        items = [self._item(seed, batch, index, "demonstrations") for index in range(count)]
        responses = torch.full((count, self.max_response), self._end)
        mask = torch.zeros(count, self.max_response, dtype=torch.bool)
        for row, item in enumerate(items):
            tokens, own = self._demonstrated(item)
            if len(tokens) > self.max_response:
                raise UsageError(
                    f"{self.canonical}: a demonstration has {len(tokens)} tokens, more than --max-response "
                    f"{self.max_response}; give at least {len(tokens)}"
                )
            responses[row, : len(tokens)] = torch.tensor(tokens)
            mask[row, : len(tokens)] = torch.tensor(own)
        return Demonstrations(self._prompts(items), responses, mask)

    def _demonstrated(self, item: Item) -> tuple[list[int], list[bool]]:
        """Tokens of a correct episode, and which of them the policy says."""
        tokens, own = list[int](), list[bool]()
        for said, heard in (*self.source.calls(item), (self.source.demonstration(item), "")):
            for text, mine in ((said, True), (heard, False)):
                part = self.tokenizer(text, add_special_tokens=False)["input_ids"] if text else []
                tokens, own = [*tokens, *part], [*own, *[mine] * len(part)]
        return [*tokens, self._end], [*own, True]

    def render(self, prompt: Tensor, response: Tensor, mask: Tensor) -> str:
        """Prompt and response as text."""
        real = prompt[int((prompt != self.pad).int().argmax()) :]
        said = response[: int(mask.nonzero().max()) + 1] if self._environment else response[mask]
        return f"{self.tokenizer.decode(real.tolist())}{self._decode(said)}"

    def _item(self, seed: int, batch: int, index: int, purpose: str) -> Item:
        """The item at that position of the stream, or the first of its replacements that is short enough."""
        while len(self._encode(item := self.source.item(seed, batch, index, purpose))) > self.prompt_length:
            batch += _SKIPPED_BATCHES
        return item

    def _prompts(self, items: Sequence[Item]) -> Tensor:
        """Padded prompts [n, Lp]; their items are remembered."""
        prompts = torch.full((len(items), self.prompt_length), self.pad)
        for row, item in zip(prompts, items, strict=True):
            tokens = self._encode(item)
            row[len(row) - len(tokens) :] = torch.tensor(tokens)
            key = row.numpy().tobytes()
            self._items.pop(key, None)  # it becomes the newest
            self._items[key] = item
        for old in list(self._items)[: max(0, len(self._items) - _REMEMBERED)]:
            del self._items[old]
        return prompts

    def _encode(self, item: Item) -> list[int]:
        if self.chat:
            turns = self.source.conversation(item)
            text = self.tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
            tokens: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        else:
            tokens = self.tokenizer(self.source.plain(item))["input_ids"]
        if not tokens or tokens[0] == self.pad:
            raise UsageError(
                f"{self.canonical}: the prompt {item.prompt[:40]!r} is empty or begins with the padding token; give "
                "the tokenizer a separate pad_token"
            )
        return tokens

    def _decode(self, tokens: Tensor) -> str:
        """Text of a response without its end token."""
        ids = tokens.tolist()
        shown = ids[:-1] if ids and ids[-1] == self._end else ids
        text: str = self.tokenizer.decode(shown, clean_up_tokenization_spaces=False)
        return text

"""What a text task is: items, a score for a response, and correct answers to learn the format from."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from vcpo_bench.bench.tasks.catalog import TASKS, NamedTask
from vcpo_bench.bench.tasks.text.dialogue import Dialogue
from vcpo_bench.errors import UsageError

Split = Literal["train", "held_out"]

TRAINING = "prompts"
"""The stream that training reads; the supervised warm start reads `"demonstrations"`."""


class Item(NamedTuple):
    """One question.

    Attributes:
        prompt: What the policy reads, without a chat template.
        answer: A correct answer as people would write it.
        meta: What else the scorer and the demonstration need.
    """

    prompt: str
    answer: str
    meta: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TextTask(NamedTask):
    """A task in plain text; `bound.BoundTask` puts it into the tokens of a model.

    Immutable; every random choice comes from keyed streams. A subclass is a frozen dataclass whose fields are its
    parameters.
    """

    needs_language_model = True

    @property
    def dialogue(self) -> Dialogue | None:
        """What answers the policy between its turns; None: the response is one turn."""
        return None

    @abstractmethod
    def items(self, split: Split) -> Sequence[Item]:
        """All items of a split of the data; of a generator, a fixed sample. Training never reads the held-out ones."""

    @abstractmethod
    def item(self, seed: int, batch: int, index: int, purpose: str = TRAINING) -> Item:
        """One training item, a pure function of the arguments.

        Args:
            seed: Seed of the run.
            batch: Index of the batch in the run.
            index: Position in the batch.
            purpose: Stream to draw from; the supervised warm start uses `"demonstrations"`.
        """

    @abstractmethod
    def score(self, item: Item, text: str) -> float:
        """Reward in [0, 1] of any response: never raises, never runs the text, takes bounded time."""

    @abstractmethod
    def demonstration(self, item: Item) -> str:
        """A correct response in the expected format; scores 1. Of a dialogue, its last turn."""

    def calls(self, item: Item) -> Sequence[tuple[str, str]]:
        """What a correct episode says and hears before its last turn; nothing, unless a task with a dialogue does."""
        return ()


def text_task(expression: str) -> TextTask:
    """The text task that an expression names: `countdown`, `countdown(numbers=3)`, `gsm8k(data=train.jsonl)`.

    Raises:
        UsageError: The expression cannot be read, or names a task in tokens.
    """
    if not TASKS.class_of(expression).needs_language_model:
        names = ", ".join(name for name in TASKS.names() if TASKS.get(name).needs_language_model)
        raise UsageError(f"{expression!r} has its own tokens: drop --model, or choose a text task ({names})")
    task = TASKS.parse(expression)
    assert isinstance(task, TextTask)
    return task

"""What a text task is: items, a score for a response, and correct answers to learn the format from."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

from vcpo_bench.bench.tasks.catalog import TASKS, NamedTask
from vcpo_bench.bench.tasks.text.dialogue import Dialogue
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.parameters import integer, text

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

    Attributes:
        shots: Solved examples before every question, the same in all prompts; in a chat template, turns of their own.
        system: System prompt; without a chat template, the first line of the prompt.
    """

    needs_language_model = True
    suits: ClassVar[str] = "LM"
    common = ("shots", "system")
    shots: int = integer(0, minimum=0, maximum=64)
    system: str = text("", legal="a text")

    def __post_init__(self) -> None:
        """Refuse examples of a task in turns.

        Raises:
            UsageError: They are asked for.
        """
        super().__post_init__()
        if self.shots and self.dialogue is not None:
            raise UsageError(f"{self.name}(shots={self.shots}): a task in turns takes no examples; drop shots")

    @property
    def continues(self) -> bool:
        """Whether prompts are text to be continued, never put into a chat template."""
        return False

    @cached_property
    def examples(self) -> Sequence[Item]:
        """The items that prompts begin with; none is held out."""
        return [self.item(0, 0, index, "examples") for index in range(self.shots)]

    def conversation(self, item: Item) -> list[dict[str, str]]:
        """The prompt of an item as the turns of a chat template."""
        turns = [("system", self.system)] if self.system else []
        for one in self.examples:
            turns += [("user", one.prompt), ("assistant", self.demonstration(one))]
        return [{"role": role, "content": said} for role, said in [*turns, ("user", item.prompt)]]

    def plain(self, item: Item) -> str:
        """The prompt of an item as text to be continued."""
        first = f"{self.system}\n" if self.system else ""
        return first + "".join(map(self.example, self.examples)) + item.prompt

    def example(self, item: Item) -> str:
        """A solved item before others, as plain text."""
        return f"{item.prompt}\n{self.demonstration(item)}\n\n"

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

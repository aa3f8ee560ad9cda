"""What a task in words is: items, a score for a response, and right answers to learn the format from."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

Split = Literal["train", "held_out"]
Setting = str | int

TRAINING = "prompts"
"""The stream that training reads; warm-up reads `"demonstrations"`."""


class Item(NamedTuple):
    """One question.

    Attributes:
        prompt: What the policy reads; a chat template, if any, is put around it by whoever has the tokenizer.
        answer: The right answer, or one of them, as people would write it.
        meta: What the scorer and the demonstration need besides.
    """

    prompt: str
    answer: str
    meta: Mapping[str, Any]


class TextTask(ABC):
    """A task in words. Immutable; every random choice comes from keyed streams.

    Attributes:
        name: What the user types, without parameters.
        summary: One line for `ls tasks`.
        parameters: Default of each parameter; its type is the type the parameter takes.
        scorer_version: Raised whenever some response would be scored differently than before.
        max_response: Suggested longest response, in tokens.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    parameters: ClassVar[Mapping[str, Setting]] = {}
    scorer_version: ClassVar[int] = 1

    max_response: int

    @property
    def canonical(self) -> str:
        """Name and the settings that differ from their defaults, sorted: equal meaning, equal string.

        A scorer version above 1 is one of them, so that results of two scorers never share a cell.
        """
        settings = {key: value for key, value in self.settings().items() if value != self.parameters.get(key)}
        if self.scorer_version > 1:
            settings["scorer"] = self.scorer_version
        written = ",".join(f"{key}={settings[key]}" for key in sorted(settings))
        return f"{self.name}({written})" if written else self.name

    def settings(self) -> dict[str, Setting]:
        """The value of each parameter; by convention an attribute of that name."""
        return {key: getattr(self, key) for key in self.parameters}

    @abstractmethod
    def items(self, split: Split) -> Sequence[Item]:
        """All items of a split of the data; of a generator, a fixed sample. Training never reads the held-out ones."""

    @abstractmethod
    def item(self, seed: int, batch: int, index: int, purpose: str = TRAINING) -> Item:
        """One training item, a pure function of the arguments.

        Args:
            seed: Seed of the run.
            batch: Which batch of the run.
            index: Place in the batch.
            purpose: Stream to draw from; the supervised start uses `"demonstrations"`.
        """

    @abstractmethod
    def score(self, item: Item, text: str) -> float:
        """Reward in [0, 1] of a response, whatever it holds: never raises, never runs it, takes bounded time."""

    @abstractmethod
    def demonstration(self, item: Item) -> str:
        """A right response in the expected format; scores 1."""

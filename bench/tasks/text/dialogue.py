"""What answers a language model between its turns: a dialogue in text, and the environment it is in tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from vcpo_bench.bench.tasks.environment import Environment, Kind, Reply, Turn
from vcpo_bench.bench.tasks.text.tokenizer import Tokenizer

_TAIL = 8  # tokens at the end of a turn in which what ends it must show


class Dialogue(ABC):
    """What a text task says between the turns of a policy. It keeps no state.

    A turn is over when the policy ends it with the end token, or when its text calls for a reply.

    Class attributes:
        marks: A text calls for a reply only where its last characters hold this.
    """

    marks: str

    @property
    @abstractmethod
    def turn_limit(self) -> int:
        """Most turns of an episode."""

    @abstractmethod
    def calls(self, text: str) -> bool:
        """Whether the text of a turn, as far as it is written, calls for a reply."""

    @abstractmethod
    def reply(self, text: str) -> tuple[Kind, str]:
        """What a text that calls is, and what is inserted after it, which is not empty."""

    @abstractmethod
    def answered(self, text: str) -> bool:
        """Whether a turn that the policy ended itself holds an answer, right or wrong."""


class BoundDialogue(Environment):
    """A dialogue in the tokens of a model.

    What the policy said is never encoded again: its own tokens stay, and only what is inserted is put into tokens. A
    turn may thus end with a token that reaches beyond what ended it.
    """

    def __init__(self, dialogue: Dialogue, tokenizer: Tokenizer) -> None:
        self.dialogue, self.tokenizer = dialogue, tokenizer

    @property
    def turn_limit(self) -> int:
        """That of the dialogue."""
        return self.dialogue.turn_limit

    def over(self, said: Sequence[int]) -> bool:
        """After the end token, and once the text calls."""
        if said[-1] == self.tokenizer.eos_token_id:
            return True
        return self.dialogue.marks in self._text(said[-_TAIL:]) and self.dialogue.calls(self._text(said))

    def reply(self, prompt: Sequence[int], turns: Sequence[Turn], said: Sequence[int]) -> Reply:
        """What the dialogue replies; the end token ends the episode, with an answer or without one."""
        if said[-1] == self.tokenizer.eos_token_id:
            return Reply("answer" if self.dialogue.answered(self._text(said[:-1])) else "void", ends=True)
        kind, text = self.dialogue.reply(self._text(said))
        return Reply(kind, tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"]))

    def _text(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False)
        return text

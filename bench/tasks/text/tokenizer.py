"""What text tasks ask of a tokenizer."""

from typing import Any, Protocol


class Tokenizer(Protocol):
    """What is needed of a tokenizer; those of transformers fit.

    Attributes:
        eos_token_id: The end token.
        pad_token_id: The padding token, or None.
        chat_template: How a conversation is written, or None.
    """

    eos_token_id: int
    pad_token_id: int | None
    chat_template: Any

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> Any:
        """A mapping whose `input_ids` are the tokens of a text."""

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool | None = None) -> Any:
        """The text of some tokens."""

    def apply_chat_template(self, conversation: Any, *, add_generation_prompt: bool, tokenize: bool) -> Any:
        """A conversation as text."""

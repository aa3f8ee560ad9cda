"""Text to tokens and back, for vocabularies in which every token is a short string."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from vcpo_bench.errors import UsageError


class TokenText:
    """Greedy tokenizer: at each position, the longest token that matches.

    Args:
        words: Text of each token, none empty.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(words)}
        longest_first = sorted(map(re.escape, words), key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first) + "|(?P<unknown>.)", re.DOTALL)

    def encode(self, text: str) -> list[int]:
        """Tokens of a text.

        Raises:
            UsageError: The text has a character that no token starts with.
        """
        tokens = []
        for match in self._pattern.finditer(text):
            if match["unknown"]:
                raise UsageError(
                    f"text {text[:40]!r}: the policy has no token for {match['unknown']!r}, only for "
                    f"{' '.join(self.words)}; choose a task it can read, such as those named vcpo-*"
                )
            tokens.append(self._numbers[match[0]])
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        """Text of tokens."""
        return "".join(self.words[int(token)] for token in tokens)

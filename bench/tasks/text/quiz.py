"""quiz: small questions that a small pretrained model answers right in one case of three or four."""

import re
from dataclasses import dataclass

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.naming.parameters import choice, integer

# fmt: off
_WORDS = (
    "apple", "bread", "chair", "dance", "eagle", "flame", "grape", "house", "index", "juice", "knife",
    "lemon", "mouse", "night", "ocean", "piano", "queen", "river", "stone", "table", "uncle", "voice",
    "water", "young", "zebra", "banana", "cheese", "dinner", "engine", "flower", "garden", "hammer",
    "island", "jacket", "kitten", "letter", "mirror", "needle", "orange", "pepper", "rabbit", "summer",
    "tunnel", "velvet", "window", "yellow",
)
# fmt: on


@dataclass(frozen=True, kw_only=True)
class Quiz(GeneratedTask):
    """The last whole number of the response is the answer; after examples, that of its first line.

    Without examples the question asks for the result only, for models that follow instructions. With examples
    (`shots`), prompts are text to be continued, for any pretrained model; sums are then bare, `5+1=6`.

    Attributes:
        kind: What is asked: the sum of two numbers, a remainder, the largest of four, or how often a letter occurs.
        largest: Largest number.
    """

    name = "quiz"
    summary = "small questions: sum, mod, largest or letters; with shots, to be continued from solved examples"
    suits = "LM 135M"
    kind: str = choice("sum", "mod", "largest", "letters")
    largest: int = integer(9, minimum=2, maximum=9999)

    @property
    def continues(self) -> bool:
        """With examples."""
        return self.shots > 0

    @property
    def max_response(self) -> int:
        """The number and the start of what would be the next example; without examples, room for a short sentence."""
        return 4 + len(str(2 * self.largest)) if self.shots else 16

    def draw(self, stream: ItemStream) -> Item:
        """Numbers, words and letters are uniform."""
        question, answer = self._drawn(stream)
        if not self.shots:
            return Item(f"{question} Answer with the result only.", str(answer), {})
        return Item(question if self.kind == "sum" else f"Question: {question}\nAnswer:", str(answer), {})

    def example(self, item: Item) -> str:
        """See `TextTask.example`."""
        return f"{item.prompt}{item.answer}\n" if self.kind == "sum" else f"{item.prompt} {item.answer}\n\n"

    def score(self, item: Item, text: str) -> float:
        """1 if the number is the answer, else 0."""
        numbers = re.findall(r"-?[0-9]+", text.strip().split("\n")[0] if self.shots else text)
        return float(bool(numbers) and numbers[-1] == item.answer)

    def demonstration(self, item: Item) -> str:
        """The answer."""
        return item.answer

    def _drawn(self, stream: ItemStream) -> tuple[str, int]:
        """A question and its answer."""
        a, b, c, d = (1 + stream.below(self.largest) for _ in range(4))
        if self.kind == "sum":
            return f"{a}+{b}=" if self.shots else f"What is {a} + {b}?", a + b
        if self.kind == "mod":
            divisor = 2 + stream.below(8)
            return f"What is the remainder when {a} is divided by {divisor}?", a % divisor
        if self.kind == "largest":
            return f"Which is the largest of {a}, {b}, {c} and {d}?", max(a, b, c, d)
        word = _WORDS[stream.below(len(_WORDS))]
        letter = word[stream.below(len(word))]
        return f'How many times does the letter "{letter}" occur in the word "{word}"?', word.count(letter)

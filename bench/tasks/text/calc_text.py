"""calc-text: add and multiply by calls, for language models."""

from collections.abc import Sequence
from dataclasses import dataclass

from vcpo_bench.bench.tasks.environment import Kind
from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.dialogue import Dialogue
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.bench.tasks.text.scoring.expressions import evaluate

_CALL, _ANSWER, _END, _ERROR = "?=;!"
_RESULT = 4  # characters of a result that is shown


class CalcDialogue(Dialogue):
    """Works out the expression of a turn `?EXPRESSION;`."""

    marks = _END

    @property
    def turn_limit(self) -> int:
        """The call, the answer, and one to spare."""
        return 3

    def calls(self, text: str) -> bool:
        """A text with its end does."""
        return _END in text

    def reply(self, text: str) -> tuple[Kind, str]:
        """The value of the expression, or `!` where that is no whole number or too long, or nothing was called."""
        said = text.partition(_END)[0]
        if not said.startswith(_CALL):
            return "void", _ERROR
        shown = _shown(said.removeprefix(_CALL))
        return ("call", shown) if shown else ("malformed", _ERROR)

    def answered(self, text: str) -> bool:
        """It begins with `=`."""
        return text.startswith(_ANSWER)


@dataclass(frozen=True, kw_only=True)
class CalcText(GeneratedTask):
    """The prompt asks for the sum or the product of two numbers of two digits, `12*34:`; a call works them out.

    A turn `?12*34;` is a call: the value of the expression is inserted, at most four characters. A turn
    `=408` that the policy ends with its end token is the answer. For character-level models: nothing in a prompt tells
    the format, which the warm start teaches.
    """

    name = "calc-text"
    summary = "add or multiply numbers of two digits by a call that works it out (an environment, 2 turns)"
    suits = "LM 1M new"
    in_turns = True
    scorer_version = 2  # the first ran calls as Python, which knows ** and // and prints 8/2 as 4.0

    @property
    def dialogue(self) -> CalcDialogue:
        """What works calls out."""
        return CalcDialogue()

    @property
    def max_response(self) -> int:
        """Two calls with their results, and the answer, where every character is a token."""
        return 30

    def draw(self, stream: ItemStream) -> Item:
        """Numbers from 10 to 99, uniform; half of them are added and half multiplied."""
        one, two, times = 10 + stream.below(90), 10 + stream.below(90), stream.below(2)
        return Item(f"{one}{'*' if times else '+'}{two}:", str(one * two if times else one + two), {})

    def score(self, item: Item, text: str) -> float:
        """1 if the turn is `=` with the result, else 0."""
        return float(text.strip() == f"{_ANSWER}{item.answer}")

    def demonstration(self, item: Item) -> str:
        """The answer."""
        return f"{_ANSWER}{item.answer}"

    def calls(self, item: Item) -> Sequence[tuple[str, str]]:
        """The prompt, worked out."""
        return [(f"{_CALL}{item.prompt[:-1]}{_END}", item.answer)]


def _shown(expression: str) -> str:
    """The value of an expression: a whole number of at most four characters, else empty."""
    found = evaluate(expression)
    text = str(found.value) if found else ""  # a fraction has a stroke
    return text if text.removeprefix("-").isdigit() and len(text) <= _RESULT else ""

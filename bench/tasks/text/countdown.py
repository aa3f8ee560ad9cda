"""countdown: reach a target with the given numbers, each exactly once. Every item can be solved."""

from dataclasses import dataclass
from typing import NamedTuple

from vcpo_bench.bench.tasks.text.base import Item
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import ItemStream
from vcpo_bench.bench.tasks.text.scoring.boxed import last_tagged
from vcpo_bench.bench.tasks.text.scoring.expressions import evaluate
from vcpo_bench.naming.parameters import choice, integer

_SUM, _PRODUCT, _ATOM = range(3)
_INSTRUCTION = (
    "Use each of the numbers {numbers} exactly once, with +, -, *, / and parentheses, to write an expression that "
    "equals {target}. Think first, then give the expression alone between <answer> and </answer>, as in "
    "<answer>(1+2)*3</answer>."
)


@dataclass(frozen=True, kw_only=True)
class Countdown(GeneratedTask):
    """A response is right (1, else 0) if its expression uses every number exactly once and has the target's value.

    As in VCPO's and TinyZero's reward there must be one expression, in the last answer tags, that uses all numbers;
    unlike theirs it is never evaluated as code, and a right format with a wrong value earns nothing (VCPO: nothing;
    TinyZero: 0.1).

    Attributes:
        numbers: How many numbers.
        largest: Largest number; numbers are uniform in 1..largest and may repeat.
        target: Largest target; the smallest is 1.
        style: `tags` for instruction-tuned models, `bare` for character-level models: `3,5,7=36:` answered by
            `(5+7)*3`.
    """

    name = "countdown"
    summary = "reach a target with numbers, each used exactly once; always solvable (many right answers)"
    suits = "LM 3B"
    numbers: int = integer(4, minimum=2, maximum=6)
    largest: int = integer(99, minimum=4, maximum=999)
    target: int = integer(100, minimum=4, maximum=99999)
    style: str = choice("tags", "bare")

    @property
    def max_response(self) -> int:
        """Room to think with tags; bare, every number with a sign and two parentheses, and the end token."""
        return 1024 if self.style == "tags" else self.numbers * (len(str(self.largest)) + 3) + 1

    def draw(self, stream: ItemStream) -> Item:
        """Random numbers joined at random until the value is a target; every step is positive and whole."""
        while (node := self._attempt(stream)) is None:
            pass
        listed = sorted(node.numbers, key=lambda _: stream.below(2**30))
        numbers = ",".join(map(str, listed))
        if self.style == "bare":
            prompt = f"{numbers}={node.value}:"
        else:
            prompt = _INSTRUCTION.format(numbers=numbers.replace(",", ", "), target=node.value)
        return Item(prompt, node.text, {"numbers": listed, "target": node.value})

    def _attempt(self, stream: ItemStream) -> "_Node | None":
        nodes = [_leaf(1 + stream.below(self.largest)) for _ in range(self.numbers)]
        while len(nodes) > 1:
            left, right = nodes.pop(stream.below(len(nodes))), nodes.pop(stream.below(len(nodes)))
            while (joined := _join("+-*/"[stream.below(4)], left, right)) is None:
                pass
            nodes.append(joined)
        return nodes[0] if nodes[0].value <= self.target else None

    def score(self, item: Item, text: str) -> float:
        """1 if the expression is right, else 0."""
        expression = text if self.style == "bare" else last_tagged(text)
        found = evaluate(expression.strip()) if expression is not None else None
        right = found is not None and found.value == item.meta["target"]
        return float(right and found is not None and sorted(found.numbers) == sorted(item.meta["numbers"]))

    def demonstration(self, item: Item) -> str:
        """The expression that made the item, in tags unless the style is bare."""
        return item.answer if self.style == "bare" else f"<answer>{item.answer}</answer>"


class _Node(NamedTuple):
    value: int
    text: str
    kind: int  # of the outermost operation: what needs parentheses inside what
    numbers: tuple[int, ...]


def _leaf(value: int) -> _Node:
    return _Node(value, str(value), _ATOM, (value,))


def _join(sign: str, left: _Node, right: _Node) -> _Node | None:
    """Two expressions joined; None unless the value is a positive whole number."""
    if (sign == "-" and left.value <= right.value) or (sign == "/" and left.value % right.value):
        return None
    value = {
        "+": left.value + right.value,
        "-": left.value - right.value,
        "*": left.value * right.value,
        "/": left.value // right.value,
    }[sign]
    kind = _SUM if sign in "+-" else _PRODUCT
    first = f"({left.text})" if left.kind < kind else left.text
    second = f"({right.text})" if right.kind < kind or (right.kind == kind and sign in "-/") else right.text
    return _Node(value, f"{first}{sign}{second}", kind, left.numbers + right.numbers)

"""countdown: reach a target with the given numbers, each exactly once. Every item can be solved."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from vcpo_bench.bench.tasks.text.base import Item, Setting
from vcpo_bench.bench.tasks.text.items.generated import GeneratedTask
from vcpo_bench.bench.tasks.text.items.item_stream import Draws
from vcpo_bench.bench.tasks.text.scoring.boxed import last_tagged
from vcpo_bench.bench.tasks.text.scoring.expressions import evaluate
from vcpo_bench.errors import UsageError

STYLES = ("tags", "bare")
_SUM, _PRODUCT, _ATOM = range(3)
_INSTRUCTION = (
    "Use each of the numbers {numbers} exactly once, with +, -, *, / and parentheses, to write an expression that "
    "equals {target}. Think first, then give the expression alone between <answer> and </answer>, as in "
    "<answer>(1+2)*3</answer>."
)


class Countdown(GeneratedTask):
    """A response is right (1, else 0) if its expression uses every number exactly once and has the target's value.

    As in VCPO's and TinyZero's reward there must be one expression, in the last answer tags, that uses all numbers;
    unlike theirs it is never evaluated as code, and a right format with a wrong value earns nothing (VCPO: nothing;
    TinyZero: 0.1).

    Args:
        numbers: How many numbers, 2 to 6.
        largest: Largest number, 4 to 999; numbers are uniform in 1..largest and may repeat.
        target: Largest target, 4 to 99999; the smallest is 1.
        style: `tags` for models that read, `bare` for models of characters: `3,5,7=36:` answered by `(5+7)*3`.

    Raises:
        UsageError: A parameter is out of range.
    """

    name = "countdown"
    summary = "reach a target with numbers, each used exactly once; always solvable (many right answers)"
    parameters: ClassVar[Mapping[str, Setting]] = {"numbers": 4, "largest": 99, "target": 100, "style": "tags"}

    def __init__(self, numbers: int = 4, largest: int = 99, target: int = 100, style: str = "tags") -> None:
        if not 2 <= numbers <= 6:
            raise UsageError(f"countdown(numbers={numbers}): numbers must be 2 to 6")
        if not 4 <= largest <= 999:
            raise UsageError(f"countdown(largest={largest}): largest must be 4 to 999")
        if not 4 <= target <= 99999:
            raise UsageError(f"countdown(target={target}): target must be 4 to 99999")
        if style not in STYLES:
            raise UsageError(f"countdown(style={style}): style must be {' or '.join(STYLES)}")
        self.numbers = numbers
        self.largest = largest
        self.target = target
        self.style = style
        # bare: every number, a sign and a pair of parentheses each, and the end token
        self.max_response = 1024 if style == "tags" else numbers * (len(str(largest)) + 3) + 1

    def draw(self, draws: Draws) -> Item:
        """Random numbers joined at random until the value is a target; every step is positive and whole."""
        while (node := self._attempt(draws)) is None:
            pass
        listed = sorted(node.numbers, key=lambda _: draws.below(2**30))
        numbers = ",".join(map(str, listed))
        if self.style == "bare":
            prompt = f"{numbers}={node.value}:"
        else:
            prompt = _INSTRUCTION.format(numbers=numbers.replace(",", ", "), target=node.value)
        return Item(prompt, node.text, {"numbers": listed, "target": node.value})

    def _attempt(self, draws: Draws) -> "_Node | None":
        nodes = [_leaf(1 + draws.below(self.largest)) for _ in range(self.numbers)]
        while len(nodes) > 1:
            left, right = nodes.pop(draws.below(len(nodes))), nodes.pop(draws.below(len(nodes)))
            while (joined := _join("+-*/"[draws.below(4)], left, right)) is None:
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

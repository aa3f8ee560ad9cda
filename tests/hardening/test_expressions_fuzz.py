"""Expressions from a grammar of right and wrong pieces: one spelling each, or one line that says what is wrong.

`HARDENING=long` reads 50,000 of them instead of 2,000.
"""

import os
import random

import pytest

from vcpo_bench.errors import UsageError
from vcpo_bench.methods import METHODS, method_names, parse_method, part_names, split_expressions
from vcpo_bench.naming.component import parameters

COUNT = 50_000 if os.environ.get("HARDENING") == "long" else 2_000
SEED = 20261122
NUMBERS = (
    "0", "1", "-1", "0.5", "1/8", "1/0", "/", "8.0", "1e-4", "1e400", "-0", "inf", "-inf", "nan", "1_0", "9" * 400,
)  # fmt: skip
JUNK = (
    "", " ", "\t", "=", "(", ")", ",", "+", ":", ":paper", "[", "]", "\u0663", "\u00b2", "\x00", "\x1b[31m", "\n",
    "%s",
)  # fmt: skip
WORDS = ("on", "off", "measured", "paper", "token", "sequence", "None", "True", "vcpo", "all", "\U0001f600")


class Writer:
    """Writes expressions; most are right in most places.

    Args:
        seed: Of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = [*method_names(), *part_names()]

    def expression(self, depth: int = 0) -> str:
        """One expression, sometimes with a mistake."""
        parts = self.random.choices((0, 1, 2, 3), (4, 4, 2, 1))[0]
        items = [self.item(depth, first=True), *(self.item(depth, first=False) for _ in range(parts))]
        text = self.random.choice(("+", "+", "+", " + ", "++")).join(items)
        return self.damaged(text) if depth == 0 and self.random.random() < 0.3 else text

    def item(self, depth: int, *, first: bool) -> str:
        """`NAME(key=value,...)`."""
        usual = method_names() if first else part_names()
        name = self.random.choice(usual if self.random.random() < 0.9 else self.names)
        known = list(parameters(METHODS.kinds[name]))
        keys = self.random.sample(known, min(len(known), self.random.choice((0, 0, 1, 2, 4))))
        settings = [f"{key}={self.value(name, key, depth)}" for key in keys]
        suffix = ":paper" if first and self.random.random() < 0.1 else ""
        return f"{name}{suffix}({','.join(settings)})" if settings or self.random.random() < 0.1 else name + suffix

    def value(self, name: str, key: str, depth: int) -> str:
        """A legal word or number, or sometimes any other."""
        parameter = parameters(METHODS.kinds[name])[key][1]
        if parameter.kind == "expression" and depth < 4:
            return self.expression(depth + 1)
        if self.random.random() < 0.05:
            return self.random.choice((*JUNK, *WORDS))
        return self.random.choice(parameter.words or NUMBERS[:9] * 3 + NUMBERS)

    def damaged(self, text: str) -> str:
        """Some characters inserted, lost or doubled."""
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(text) + 1)
            cut = self.random.choice((0, 0, 1, 5))
            text = text[:place] + self.random.choice((*JUNK, *NUMBERS[:4], text[:3])) + text[place + cut :]
        return text


def read(text: str) -> bool:
    """Whether it is an expression; if so, its canonical spelling is read as the same method."""
    try:
        method = parse_method(text)
    except UsageError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert refusal.isprintable()
        return False
    again = parse_method(method.canonical)
    assert again == method
    assert again.canonical == method.canonical
    assert again.version == method.version
    assert split_expressions(method.canonical) == [method.canonical]
    return True


def test_expressions_are_read_back_or_refused_in_words() -> None:
    writer = Writer(SEED)
    legal = sum(read(writer.expression()) for _ in range(COUNT))
    assert 0.2 < legal / COUNT < 0.8  # both halves of the claim were tried


@pytest.mark.parametrize("text", [*JUNK, *WORDS, "clip(" * 5000, ")" * 5000, "clip" + "+ess" * 3000, "(" * 9 + ")" * 9])
def test_what_is_no_expression_at_all(text: str) -> None:
    if text not in ("vcpo",):
        assert not read(text)

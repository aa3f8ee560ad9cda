"""Which methods and parts exist, and methods from expressions: `NAME(key=value,...)+PART(...)`, and `NAME:paper`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from vcpo_bench.errors import UsageError
from vcpo_bench.methods.assembly.method import Method
from vcpo_bench.methods.assembly.ratio_methods import WeightMethod
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.naming.catalog import Catalog
from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import NamedItem, read_items, split_list, unknown_name


class MethodCatalog(Catalog[MethodComponent]):
    """Methods and parts: what may stand in a method expression.

    The first item of an expression is a method, or a part that makes a stabilizer of its own (`opsm` for `clip+opsm`);
    the others are parts, or weights that multiply. `NAME:paper` adds the paper's own advantage and aggregation.
    """

    def names(self) -> list[str]:
        """What an expression may start with, in alphabetical order."""
        return sorted(name for name, kind in self.kinds.items() if issubclass(kind, Method) or kind.host)

    def part_names(self) -> list[str]:
        """Names of all parts, in alphabetical order."""
        return sorted(name for name, kind in self.kinds.items() if not issubclass(kind, Method))

    def parse(self, text: str) -> Method:
        """The method that an expression describes.

        Raises:
            ExpressionError: Points at the character, and names the closest matches and the legal values.
        """
        first, *others = read_items(text)
        head = self._item(text, first, first=True)
        extras = tuple(self._item(text, item, first=False) for item in others)
        if not isinstance(head, Method):
            head, extras = self.parse(head.host), (head, *extras)
        try:
            return replace(head, extras=self._with_paper(head, extras) if first.suffix is not None else extras)
        except UsageError as error:
            raise ExpressionError(text, first.name.start, str(error)) from None

    def parse_list(self, text: str) -> list[Any]:
        """The methods of a comma-separated list, each once; `all` stands for every method with its defaults.

        Raises:
            ExpressionError: As `parse`; positions count within the item that failed.
        """
        spelled = [name for piece in split_list(text) for name in (self.names() if piece == "all" else [piece])]
        return list({method.canonical: method for method in map(self.parse, spelled)}.values())

    def _item(self, text: str, item: NamedItem, *, first: bool) -> MethodComponent:
        """One item of an expression; what it names must be allowed at its place."""
        name, kind = item.name, self.entries.lookup(item.name.text)
        if item.suffix is not None and (item.suffix.text != "paper" or not first):
            end = name.start + len(name.text)
            raise ExpressionError(text, end, "only ':paper' may follow the name of a method")
        if kind is None:
            word, known = ("method", self.names()) if first else ("part", filter(self._can_be_added, self.kinds))
            raise ExpressionError(text, name.start, self.unknown(name.text, list(known), word))
        if first and kind.name not in self.names():
            problem = f"{name.text!r} is a part, not a method; add it to one, for example reinforce+{name.text}"
            raise ExpressionError(text, name.start, problem)
        if not first and not self._can_be_added(kind.name):
            problem = f"{name.text!r} is a method of its own and cannot be added with '+'; start the expression with it"
            raise ExpressionError(text, name.start, problem)
        return self.build(text, item)

    def unknown(self, name: str, known: Sequence[str] | None = None, word: str = "method") -> str:
        """What to say of a name that does not exist: what it is called here, where a trainer has it, else the known."""
        spelled = name.lower().replace("_", "-")
        here = [kind.name for kind in self.kinds.values() if spelled in vars(kind).get("known_as", ())]  # not inherited
        if here:
            return f"unknown {word} {name!r}: it is called {' or '.join(sorted(here))} here"
        return unknown_name(word, name, self.names() if known is None else known)

    def _can_be_added(self, name: str) -> bool:
        kind = self.kinds[name]
        return issubclass(kind, WeightMethod) or not issubclass(kind, Method)

    def _with_paper(self, method: Method, extras: tuple[MethodComponent, ...]) -> tuple[MethodComponent, ...]:
        """The paper's parts, except those of a single-valued slot that the expression sets itself."""
        if not method.paper_parts:
            return extras
        stated = {part.slot for part in extras} & {"baseline", "aggregation", "step"}
        own = [self.build(method.paper_parts, item) for item in read_items(method.paper_parts)]
        return (*(part for part in own if part.slot not in stated), *extras)


METHODS = MethodCatalog(
    "method",
    MethodComponent,
    ["vcpo_bench.methods.parts", "vcpo_bench.methods"],
    template="vcpo_bench.methods.assembly.template",
    to_subclass=(
        *("Method", "RatioMethod", "WeightMethod", "Admission", "Aggregation", "Baseline", "Mask"),
        *("Regularizer", "Step"),
    ),
)
"""Every method and part."""


def parse_method(text: str) -> Method:
    """Read a method expression.

    Raises:
        ExpressionError: Points at the character, and names the closest matches and the legal values.
    """
    return METHODS.parse(text)


def parse_methods(text: str) -> list[Method]:
    """Read a comma-separated list; `all` stands for every method with its defaults.

    Raises:
        ExpressionError: As `parse_method`; positions count within the item that failed.
    """
    return METHODS.parse_list(text)


def method_names() -> list[str]:
    """Names of all methods, in alphabetical order: what an expression may start with.

    Parts that make a stabilizer of their own (`opsm` for `clip+opsm`) are among them.
    """
    return METHODS.names()


def part_names() -> list[str]:
    """Names of all parts, in alphabetical order."""
    return METHODS.part_names()

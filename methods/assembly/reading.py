"""The one grammar: `NAME(key=value,...)+PART(...)`, and `NAME:paper`.

::

    expression = item {"+" item}
    item       = name [":paper"] ["(" [key "=" value {"," key "=" value}] ")"]
    value      = number | fraction such as 1/8 | word | nested expression

The first item is a method; the others are parts, or weights that multiply. Spaces around signs do not matter.
"""

import difflib
from dataclasses import dataclass, replace

from vcpo_bench.methods.assembly.method import Method, WeightMethod
from vcpo_bench.methods.assembly.registry import method_names, part_names, registry
from vcpo_bench.methods.core.component import Component, parameters
from vcpo_bench.methods.core.errors import ExpressionError, MethodError
from vcpo_bench.naming.parameters import Parameter


@dataclass(frozen=True)
class _Piece:
    """A stretch of the expression and where it starts."""

    text: str
    start: int

    def strip(self) -> "_Piece":
        left = len(self.text) - len(self.text.lstrip())
        return _Piece(self.text.strip(), self.start + left)


def parse_method(text: str) -> Method:
    """Read a method expression.

    Raises:
        ExpressionError: Points at the character, and names the closest matches and the legal values.
    """
    first, *rest = _split(text, _Piece(text, 0), "+")
    head, paper = _item(text, first, first=True)
    extras = tuple(_item(text, piece, first=False)[0] for piece in rest)
    if not isinstance(head, Method):
        head, extras = parse_method(head.host), (head, *extras)
    try:
        if paper:
            extras = _with_paper(text, head, extras)
        return replace(head, extras=extras)
    except ExpressionError:
        raise
    except MethodError as error:
        raise ExpressionError(text, first.start, str(error)) from None


def parse_methods(text: str) -> list[Method]:
    """Read a comma-separated list; `all` stands for every method with its defaults.

    Raises:
        ExpressionError: As `parse_method`; positions count within the item that failed.
    """
    found: list[Method] = []
    for piece in split_expressions(text):
        names = method_names() if piece == "all" else [piece]
        found += [parse_method(name) for name in names]
    return list({method.canonical: method for method in found}.values())


def split_expressions(text: str) -> list[str]:
    """Cut a list at the commas that are not inside parentheses.

    Raises:
        ExpressionError: For unbalanced parentheses or an empty item.
    """
    return [piece.strip().text for piece in _split(text, _Piece(text, 0), ",")]


def closest(name: str, candidates: list[str]) -> str:
    """`; did you mean x or y?`, or an empty string when nothing is close."""
    close = difflib.get_close_matches(name, candidates, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _split(text: str, piece: _Piece, separator: str) -> list[_Piece]:
    """Cut at separators outside parentheses; a sign inside a number such as 1e+3 does not cut."""
    depth, begin, found = 0, 0, []
    for index, character in enumerate(piece.text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            raise ExpressionError(text, piece.start + index, "unexpected ')'")
        if character == separator and depth == 0:
            found.append(_Piece(piece.text[begin:index], piece.start + begin))
            begin = index + 1
    if depth:
        raise ExpressionError(text, piece.start + piece.text.index("("), "this '(' is never closed")
    found.append(_Piece(piece.text[begin:], piece.start + begin))
    for each in found:
        if not each.text.strip():
            raise ExpressionError(text, each.start, f"something is missing around {separator!r}")
    return found


def _item(text: str, piece: _Piece, *, first: bool) -> tuple[Component, bool]:
    """One named item with its parameters, and whether it asks for the paper's parts."""
    piece = piece.strip()
    head, bracket, _ = piece.text.partition("(")
    name, colon, suffix = head.strip().partition(":")
    if bracket and not piece.text.endswith(")"):
        end = piece.start + piece.text.rindex(")") + 1
        raise ExpressionError(text, end, f"expected '+' or the end after {name!r}")
    if colon and (suffix != "paper" or not first):
        raise ExpressionError(text, piece.start + len(name), "only ':paper' may follow the name of a method")
    kind = registry().components.get(name)
    allowed = method_names() if first else [*part_names(), *_weight_names()]
    if kind is None or name not in allowed:
        raise ExpressionError(text, piece.start, _unknown(name, first, allowed))
    inner = _Piece(piece.text[len(head) + 1 : -1], piece.start + len(head) + 1)
    arguments = _arguments(text, kind, inner) if bracket and inner.text.strip() else {}
    return kind(**arguments), bool(colon)


def _unknown(name: str, first: bool, allowed: list[str]) -> str:
    if first and name in part_names() and name not in method_names():
        return f"{name!r} is a part, not a method; add it to one, for example reinforce+{name}"
    if not first and name in method_names():
        return f"{name!r} is a method of its own and cannot be added with '+'; start the expression with it"
    what = "method" if first else "part"
    return f"unknown {what} {name!r}{closest(name, allowed)} Known: {', '.join(sorted(allowed))}"


def _weight_names() -> list[str]:
    components = registry().components
    return [name for name, kind in components.items() if issubclass(kind, WeightMethod)]


def _arguments(text: str, kind: type[Component], inner: _Piece) -> dict[str, object]:
    known = parameters(kind)
    found: dict[str, object] = {}
    for piece in _split(text, inner, ","):
        stripped = piece.strip()
        key, equals, _ = stripped.text.partition("=")
        key = key.strip()
        if not equals:
            raise ExpressionError(text, stripped.start, f"expected name=value, one of: {_signature(kind)}")
        if key not in known:
            problem = f"{kind.name} has no parameter {key!r}{closest(key, list(known))} It has: {_signature(kind)}"
            raise ExpressionError(text, stripped.start, problem)
        if key in found:
            raise ExpressionError(text, stripped.start, f"{key} is given twice")
        value = _Piece(stripped.text.partition("=")[2], stripped.start + stripped.text.index("=") + 1).strip()
        found[key] = _value(text, key, value, known[key][1])
    return found


def _value(text: str, key: str, value: _Piece, parameter: Parameter) -> object:
    if parameter.kind == "expression":
        try:
            return parse_method(value.text).canonical
        except ExpressionError as error:
            raise ExpressionError(text, value.start + error.position, error.problem) from None
    try:
        return parameter.read(value.text)
    except ValueError:
        problem = f"{key}={value.text} is not legal: {key} is {parameter.legal}"
        raise ExpressionError(text, value.start, problem) from None


def _signature(kind: type[Component]) -> str:
    described = [f"{name} ({parameter.legal})" for name, (_, parameter) in parameters(kind).items()]
    return "; ".join(described) or "no parameters"


def _with_paper(text: str, method: Method, extras: tuple[Component, ...]) -> tuple[Component, ...]:
    """The paper's parts, except those of a single-valued slot that the expression sets itself."""
    if not method.paper_parts:
        return extras
    stated = {part.slot for part in extras} & {"baseline", "aggregation", "step"}
    own = [
        _item(method.paper_parts, piece, first=False)[0] for piece in _split(text, _Piece(method.paper_parts, 0), "+")
    ]
    return (*(part for part in own if part.slot not in stated), *extras)

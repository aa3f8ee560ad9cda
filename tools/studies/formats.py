"""How numbers stand in a sentence."""

from __future__ import annotations

from collections.abc import Callable

from .estimates import Estimate

Number = float | Estimate


def fixed(value: Number, digits: int = 2, scale: float = 1.0, sign: bool = False) -> str:
    """A number with so many decimals; an estimate with its 95% interval, as in `0.85 [0.77, 0.90]`."""
    if isinstance(value, Estimate):
        value, ends = value.value, _ends(value, lambda one: end(one * scale, digits))
    else:
        ends = ""
    text = f"{value * scale:{'+' if sign else ''}.{digits}f}"
    return (text.lstrip("+-") if float(text) == 0 else text) + ends


def percent(value: Number, digits: int = 0) -> str:
    """A share in percent; an estimate as `15% [3, 27]`."""
    if isinstance(value, Estimate):
        return fixed(value, digits, 100).replace(" [", "% [")
    return fixed(value, digits, 100) + "%"


def factor(log2: Estimate, digits: int = 2) -> str:
    """An estimate of a log2 as the factor that it is of."""
    return fixed(2**log2.value, digits) + _ends(log2, lambda end: fixed(2**end, digits))


def small(p: float) -> str:
    """A p-value with one digit that says something: `0.03`, `0.002`, `6e-5`."""
    return f"{p:.1g}"


def rate(value: float) -> str:
    """A learning rate as it is typed: `1.6e-3`."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def end(value: float, digits: int = 2) -> str:
    """An end of an interval; one that would round to 0 keeps a digit, since its side of 0 is the verdict."""
    text = f"{value:.{digits}f}"
    if float(text):
        return text
    return f"{value:.1g}" if abs(value) > 1e-9 else "0"


def _ends(found: Estimate, show: Callable[[float], str]) -> str:
    return f" [{show(found.low)}, {show(found.high)}]"

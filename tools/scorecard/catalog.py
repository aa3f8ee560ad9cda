"""Every fact: the files of `facts/`, found by looking."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from . import facts
from .fact import Fact


def all_facts() -> list[Fact]:
    """The facts in the order in which their runs are made.

    Raises:
        ValueError: Two facts have the same number.
    """
    modules = [import_module(f"{facts.__name__}.{entry.name}") for entry in iter_modules(facts.__path__)]
    found: list[Fact] = sorted((module.FACT for module in modules), key=lambda fact: (fact.order, fact.number))
    if len({fact.number for fact in found}) < len(found):
        raise ValueError("two files of facts/ have a fact with the same number")
    return found

"""The common root of everything that can be named: a frozen dataclass with parameters and one canonical spelling."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar

from vcpo_bench.naming.errors import ParameterError
from vcpo_bench.naming.parameters import KEY, Parameter

_NAME = r"[a-z][a-z0-9]*([-_][a-z0-9]+)*"


@dataclass(frozen=True, kw_only=True)
class Component:
    """Something with a name and parameters: a method, a part, a task, a regime, a sampler, a signal ...

    A subclass is a frozen dataclass; fields made by `naming.parameters` (`number`, `choice` ...) are its parameters.

    Class attributes:
        name: The word used in expressions, in lower case. Empty: a base class, which cannot be named.
        summary: One line: what it is or does.
        bare_value: Whether `NAME(8)` stands for `NAME(first_parameter=8)`.
        common: Parameters that everything of its kind has: they come after its own, and always with their key.
        source: Digest of the plug-in file it was loaded from; empty for what ships and for installed packages.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    bare_value: ClassVar[bool] = True
    common: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse illegal parameter values.

        Raises:
            ParameterError: Names the component, the parameter, the value and the legal values.
        """
        for name, (_, parameter) in parameters(type(self)).items():
            value = getattr(self, name)
            try:
                parameter.check(value)
            except ValueError as error:
                raise ParameterError(f"{self.name}: {name}={value!r} {error}") from None

    @classmethod
    def unfinished(cls) -> str:
        """What the class lacks before objects can be made of it, as the end of a sentence; empty: nothing."""
        if any(isinstance(value, Field) for value in vars(cls).values()):
            return "is not a dataclass; write @dataclass(frozen=True, kw_only=True) above its class"
        if missing := ", ".join(sorted(getattr(cls, "__abstractmethods__", ()))):
            return f"does not define {missing}"
        bare = [one.name for one in fields(cls) if one.init and one.default is one.default_factory is MISSING]
        if bare:
            return f"has no default for {bare[0]}; write {bare[0]}: float = number(1.0)"
        typed = isinstance(cls.name, str) and re.fullmatch(_NAME, cls.name)
        return "" if typed else "has a name that cannot be typed; use lower-case words joined by '-'"

    def text(self) -> str:
        """Canonical spelling: the name and the settings in alphabetical order."""
        shown = ",".join(f"{name}={value}" for name, value in sorted(self.settings().items()))
        return f"{self.name}({shown})" if shown else self.name

    def settings(self) -> dict[str, str]:
        """What the canonical spelling shows between brackets: parameters that differ from their defaults, written."""
        return {
            name: parameter.write(getattr(self, name))
            for name, (default, parameter) in parameters(type(self)).items()
            if getattr(self, name) != default
        }


def parameters(kind: type[Component]) -> dict[str, tuple[Any, Parameter]]:
    """The parameters of a component class, name to (default, how it is read and written).

    They are in the order of its fields, the common ones last.
    """
    found: dict[str, tuple[Any, Parameter]] = {}
    for each in fields(kind):
        parameter = each.metadata.get(KEY)
        if parameter is not None and each.default is not MISSING:
            found[each.name] = (each.default, parameter)
    return {name: found[name] for name in sorted(found, key=lambda name: name in kind.common)}

"""What exists of one kind: found by listing folders, entry points and plug-in files, never from a list to edit."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from dataclasses import Field, dataclass, field
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Generic, TypeVar

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.component import Component, parameters, signature
from vcpo_bench.naming.errors import ExpressionError, PluginError
from vcpo_bench.naming.grammar import Argument, Item, Piece, closest, read_item, split_list
from vcpo_bench.naming.parameters import Parameter

C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Broken:
    """A plug-in of an entry point that could not be loaded: shown in listings, never fatal."""

    name: str
    origin: str
    error: str


@dataclass
class _Found(Generic[C]):
    """The classes by name, where each came from, older names, and what failed to load."""

    kinds: dict[str, type[C]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)


class Catalog(Generic[C]):
    """Everything of one kind that can be named.

    It stands beside the base class of the kind, so that whoever can subclass that has loaded it. The folders are
    listed when something is first asked for.

    Args:
        kind: The word for one of them: `method`, `task`, `regime` ...
        base: Base class; its named subclasses are the entries.
        packages: Dotted names of the folders whose modules define them.
        plural: The word for several; default: `kind` with an s. `vcpo_bench.PLURAL` is the entry-point group.
        template: Dotted name of the module with the texts of a new one (`naming.template`); empty: there is none.
    """

    def __init__(
        self, kind: str, base: type[C], packages: Sequence[str], *, plural: str = "", template: str = ""
    ) -> None:
        self.kind, self.base, self.packages, self.template = kind, base, tuple(packages), template
        self.plural = plural or f"{kind}s"
        self._found: _Found[C] | None = None
        CATALOGS[kind] = self

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def kinds(self) -> dict[str, type[C]]:
        """Name to class."""
        return self._filled().kinds

    @property
    def broken(self) -> list[Broken]:
        """Installed plug-ins that failed to load, with their errors."""
        return list(self._filled().broken)

    def names(self) -> list[str]:
        """All names in alphabetical order."""
        return sorted(self.kinds)

    def origin(self, name: str) -> str:
        """The module, file or entry point that defines a name."""
        return self._filled().origins[name]

    def get(self, name: str) -> type[C]:
        """The class of that name.

        Raises:
            UsageError: There is none; the message has the closest names.
        """
        kind = self._lookup(name)
        if kind is None:
            raise UsageError(self.unknown(name))
        return kind

    def class_of(self, text: str) -> type[C]:
        """The class that an expression names; its parameters are not read.

        Raises:
            ExpressionError: It does not follow the grammar.
            UsageError: There is no such name.
        """
        return self.get(read_item(text).name.text)

    def unknown(self, name: str, known: Sequence[str] | None = None) -> str:
        """What to say of a name that is not among `known` (default: all of them)."""
        names = self.names() if known is None else list(known)
        return f"unknown {self.kind} {name!r}{closest(name, names) or ';'} known: {', '.join(sorted(names))}"

    def add(self, kind: type[C], origin: str) -> None:
        """Enter a class.

        Raises:
            PluginError: Its name is taken by another class.
        """
        self._enter(self._filled(), kind, origin)

    def forget(self) -> None:
        """List everything again at the next use: plug-in files that were loaded are gone."""
        self._found = None

    def _lookup(self, name: str) -> type[C] | None:
        found = self._filled()
        return found.kinds.get(found.aliases.get(name, name))

    def _filled(self) -> _Found[C]:
        if self._found is None:
            found: _Found[C] = _Found()
            self._found = found
            for package in map(importlib.import_module, self.packages):
                for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
                    if not info.ispkg:
                        module = importlib.import_module(f"{package.__name__}.{info.name}")
                        for kind in self._defined(module):
                            self._enter(found, kind, module.__name__)
            for point in entry_points(group=f"vcpo_bench.{self.plural}"):
                try:
                    self._enter_loaded(found, point.load(), f"entry point {point.value}")
                except Exception as error:
                    found.broken.append(Broken(point.name, point.value, f"{type(error).__name__}: {error}"))
        return self._found

    def _defined(self, module: ModuleType) -> list[type[C]]:
        return [kind for kind in defined(module) if issubclass(kind, self.base)]

    def _enter(self, found: _Found[C], kind: type[C], origin: str) -> None:
        if problem := unfinished(kind):
            raise PluginError(f"{origin}: the {self.kind} {kind.name!r} {problem}")
        for name in (kind.name, *kind.aliases):
            taken = found.origins.get(found.aliases.get(name, name))
            known = found.kinds.get(found.aliases.get(name, name))
            if known is not None and known is not kind and taken != origin:  # the same file: loaded again
                raise PluginError(f"{origin} defines the {self.kind} {name!r}, which {taken} already does; rename it")
        found.kinds[kind.name] = kind
        found.origins[kind.name] = origin
        found.aliases |= dict.fromkeys(kind.aliases, kind.name)

    def _enter_loaded(self, found: _Found[C], loaded: object, origin: str) -> None:
        if isinstance(loaded, ModuleType):
            kinds = self._defined(loaded)
        else:
            kinds = [loaded] if isinstance(loaded, type) and issubclass(loaded, self.base) else []
        if not kinds:
            raise PluginError(f"{origin} holds no named subclass of {self.base.__module__}.{self.base.__qualname__}")
        for kind in kinds:
            self._enter(found, kind, origin)

    # -- from an expression to an object -----------------------------------------------------------------------------

    def parse(self, text: str) -> C:
        """The object that an expression of one item names: `chain`, `chain(8)`, `chain(n=8)`.

        Raises:
            ExpressionError: Points at the character, and names the closest matches and the legal values.
        """
        item = read_item(text)
        if item.suffix is not None:
            raise ExpressionError(text, item.suffix.start - 1, f"nothing may follow the name of a {self.kind} but '('")
        return self.build(text, item)

    def parse_list(self, text: str) -> list[C]:
        """The objects of a comma-separated list, each once.

        Raises:
            ExpressionError: As `parse`; positions count within the item that failed.
        """
        found = [self.parse(piece) for piece in split_list(text)]
        return list({one.text(): one for one in found}.values())

    def build(self, text: str, item: Item) -> C:
        """The object an item names.

        Args:
            text: The whole expression, for errors to point into.
            item: One of its items.

        Raises:
            ExpressionError: The name, a parameter or a value is not legal.
        """
        kind = self._lookup(item.name.text)
        if kind is None:
            raise ExpressionError(text, item.name.start, self.unknown(item.name.text))
        arguments = self._arguments(text, kind, item)
        try:
            return kind(**arguments)
        except ExpressionError:
            raise
        except UsageError as error:
            raise ExpressionError(text, item.name.start, str(error)) from None

    def nested(self, text: str) -> str:
        """Canonical spelling of an expression that is the value of a parameter; a kind with `+` overrides it."""
        return self.parse(text).text()

    def _arguments(self, text: str, kind: type[C], item: Item) -> dict[str, object]:
        found: dict[str, object] = {}
        for argument in item.arguments:
            key, value = self._key(text, kind, argument)
            if key in found:
                raise ExpressionError(text, (argument.key or argument.value).start, f"{key} is given twice")
            found[key] = self._value(text, key, value, parameters(kind)[key][1])
        return found

    def _key(self, text: str, kind: type[C], argument: Argument) -> tuple[str, Piece]:
        known = parameters(kind)
        if argument.key is None:
            if not known:
                raise ExpressionError(text, argument.value.start, f"{kind.name} has no parameters")
            return next(iter(known)), argument.value
        key = argument.key.text
        if key not in known:
            problem = f"{kind.name} has no parameter {key!r}{closest(key, known) or '.'} It has: {signature(kind)}"
            raise ExpressionError(text, argument.key.start, problem)
        return key, argument.value

    def _value(self, text: str, key: str, value: Piece, parameter: Parameter) -> object:
        try:
            return self.nested(value.text) if parameter.kind == "expression" else parameter.read(value.text)
        except ExpressionError as error:
            raise ExpressionError(text, value.start + error.position, error.problem) from None
        except ValueError as error:
            reason = f" ({error})" if isinstance(error, UsageError) else ""
            close = closest(value.text, parameter.words) or "."
            problem = f"{key}={value.text} is not legal{close} {key} is {parameter.legal}{reason}"
            raise ExpressionError(text, value.start, problem) from None


CATALOGS: dict[str, Catalog[Any]] = {}
"""The catalogs that are loaded, by kind; each enters itself."""


def defined(module: ModuleType) -> list[type[Component]]:
    """The named component classes that a module itself defines."""
    return [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Component) and kind.__module__ == module.__name__ and kind.__dict__.get("name")
    ]


def unfinished(kind: type[Component]) -> str:
    """What a component class still lacks before objects can be made of it; empty: nothing."""
    if any(isinstance(value, Field) for value in vars(kind).values()):
        return "is not a dataclass; write @dataclass(frozen=True, kw_only=True) above its class"
    missing = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
    return f"does not define {missing}" if missing else ""

"""The classes of one kind by name, where each came from, and how they are found in folders and entry points."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from types import ModuleType
from typing import Generic, TypeVar

from vcpo_bench.naming.component import Component
from vcpo_bench.naming.errors import PluginError

C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Broken:
    """A plug-in of an entry point that could not be loaded: shown in listings, never fatal."""

    name: str
    origin: str
    error: str


@dataclass(frozen=True)
class Entries(Generic[C]):
    """What exists of one kind.

    Attributes:
        word: The word for one of them, for messages.
        base: Base class of all of them.
        kinds: Name to class.
        origins: Name to the module, file or entry point that defines it.
        broken: What failed to load.
    """

    word: str
    base: type[C]
    kinds: dict[str, type[C]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)

    def lookup(self, name: str) -> type[C] | None:
        """The class of that name, or None."""
        return self.kinds.get(name)

    def enter(self, kind: type[C], origin: str) -> None:
        """Add a class.

        Raises:
            PluginError: It is unfinished, or its name is taken by another class.
        """
        if problem := kind.unfinished():
            raise PluginError(f"{origin}: the {self.word} {kind.name!r} {problem}")
        if self.lookup(kind.name) not in (None, kind):
            taken = self.origins[kind.name]
            raise PluginError(f"{origin} defines the {self.word} {kind.name!r}, which {taken} already does; rename it")
        self.kinds[kind.name] = kind
        self.origins[kind.name] = origin

    def without(self, origin: str) -> Entries[C]:
        """A copy without what one origin defines."""
        kept = {name: kind for name, kind in self.kinds.items() if self.origins[name] != origin}
        return replace(
            self,
            kinds=kept,
            origins={name: self.origins[name] for name in kept},
            broken=list(self.broken),
        )

    def enter_folders(self, packages: Sequence[str]) -> None:
        """Add what the modules of these folders define; modules of sub-folders are not among them.

        Raises:
            PluginError: As `enter`.
        """
        for package in map(importlib.import_module, packages):
            for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
                if not info.ispkg:
                    module = importlib.import_module(f"{package.__name__}.{info.name}")
                    for kind in self.of(module):
                        self.enter(kind, module.__name__)

    def enter_installed(self, group: str) -> None:
        """Add what installed packages announce as entry points of a group; what fails is noted in `broken`."""
        for point in entry_points(group=group):
            try:
                self._enter_loaded(point.load(), f"entry point {point.value}")
            except (Exception, SystemExit) as error:
                self.broken.append(Broken(point.name, point.value, one_line(error)))

    def of(self, module: ModuleType) -> Iterator[type[C]]:
        """The named classes of this kind that a module itself defines."""
        return (kind for kind in defined(module) if issubclass(kind, self.base))

    def _enter_loaded(self, loaded: object, origin: str) -> None:
        if isinstance(loaded, ModuleType):
            kinds = list(self.of(loaded))
        else:
            kinds = [loaded] if isinstance(loaded, type) and issubclass(loaded, self.base) and loaded.name else []
        if not kinds:
            raise PluginError(f"{origin} holds no named subclass of {self.base.__module__}.{self.base.__qualname__}")
        for kind in kinds:
            self.enter(kind, origin)


def defined(module: ModuleType) -> list[type[Component]]:
    """The named component classes that a module itself defines, in the order of their class names."""
    return [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Component) and kind.__module__ == module.__name__ and kind.__dict__.get("name")
    ]


def one_line(error: BaseException) -> str:
    """An exception as `Type: message` without line breaks."""
    return " ".join(f"{type(error).__name__}: {error}".split())

"""What exists of one kind: found by listing folders, entry points and plug-in files, never from a list to edit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.arguments import read_arguments
from vcpo_bench.naming.component import Component, parameters
from vcpo_bench.naming.entries import Broken, Entries
from vcpo_bench.naming.errors import ExpressionError
from vcpo_bench.naming.grammar import NamedItem, read_item, read_items, split_list, unknown_name

C = TypeVar("C", bound=Component)


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
        to_subclass: Names of the public classes that a new one subclasses, for messages; default: that of `base`.
    """

    def __init__(
        self,
        kind: str,
        base: type[C],
        packages: Sequence[str],
        *,
        plural: str = "",
        template: str = "",
        to_subclass: Sequence[str] = (),
    ) -> None:
        self.kind, self.base, self.packages, self.template = kind, base, tuple(packages), template
        self.plural = plural or f"{kind}s"
        self.to_subclass = tuple(to_subclass) or (base.__name__,)
        self._entries: Entries[C] | None = None
        CATALOGS[kind] = self

    # -- what there is -----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> Entries[C]:
        """The classes by name, listed at the first use."""
        if self._entries is None:
            entries = Entries(self.kind, self.base)
            entries.enter_folders(self.packages)
            entries.enter_installed(f"vcpo_bench.{self.plural}")
            self._entries = entries
        return self._entries

    @property
    def kinds(self) -> dict[str, type[C]]:
        """Name to class."""
        return self.entries.kinds

    @property
    def broken(self) -> list[Broken]:
        """Installed plug-ins that failed to load, with their errors."""
        return list(self.entries.broken)

    def names(self) -> list[str]:
        """All names in alphabetical order."""
        return sorted(self.kinds)

    def origin(self, name: str) -> str:
        """The module, file or entry point that defines a name."""
        return self.entries.origins[name]

    def get(self, name: str) -> type[C]:
        """The class of that name.

        Raises:
            UsageError: There is none; the message has the closest names.
        """
        kind = self.entries.lookup(name)
        if kind is None:
            raise UsageError(self.unknown(name))
        return kind

    def class_of(self, text: str) -> type[C]:
        """The class that an expression names; its parameters are not read.

        Raises:
            ExpressionError: It does not follow the grammar, or there is no such name.
        """
        return self._known(text, read_item(text))

    def unknown(self, name: str, known: Sequence[str] | None = None) -> str:
        """What to say of a name that is not among `known` (default: all of them)."""
        return unknown_name(self.kind, name, self.names() if known is None else known)

    def replace(self, origin: str, kinds: Iterable[type[C]]) -> None:
        """Enter the classes of a file in place of those it defined before: all of them or, after an error, none.

        Raises:
            PluginError: One is unfinished, or its name is taken by another class.
        """
        entries = self.entries.without(origin)
        for kind in kinds:
            entries.enter(kind, origin)
        self._entries = entries

    def add(self, kind: type[C], origin: str) -> None:
        """Enter one class.

        Raises:
            PluginError: It is unfinished, or its name is taken by another class.
        """
        self.entries.enter(kind, origin)

    def forget(self) -> None:
        """List everything again at the next use: plug-in files that were loaded are gone."""
        self._entries = None

    # -- from an expression to an object -----------------------------------------------------------------------------

    def parse(self, text: str) -> C:
        """The object that an expression of one item names: `chain`, `chain(8)`, `chain(n=8)`.

        Raises:
            ExpressionError: Points at the character, and names the closest matches and the legal values.
        """
        item, *others = read_items(text)
        if others:
            raise ExpressionError(text, others[0].name.start, f"a {self.kind} cannot be added to another with '+'")
        if item.suffix is not None:
            raise ExpressionError(text, item.suffix.start, f"{item.suffix.text!r} after the name of a {self.kind}")
        return self.build(text, item)

    def parse_list(self, text: str) -> list[C]:
        """The objects of a comma-separated list, each once.

        Raises:
            ExpressionError: As `parse`; positions count within the item that failed.
        """
        found = [self.parse(piece) for piece in split_list(text)]
        return list({one.text(): one for one in found}.values())

    def build(self, text: str, item: NamedItem) -> C:
        """The object an item names.

        Args:
            text: The whole expression, for errors to point into.
            item: One of its items.

        Raises:
            ExpressionError: The name, a parameter or a value is not legal.
        """
        kind = self._known(text, item)
        known = {name: parameter for name, (_, parameter) in parameters(kind).items()}
        own = [name for name in known if name not in kind.common]
        bare = own[0] if own and kind.bare_value else ""
        arguments = read_arguments(text, item, known, bare=bare, nested=self.nested)
        try:
            return kind(**arguments)
        except ExpressionError:
            raise
        except UsageError as error:
            raise ExpressionError(text, item.name.start, str(error)) from None

    def nested(self, text: str) -> str:
        """Canonical spelling of an expression that is the value of a parameter; a kind with `+` overrides it."""
        return self.parse(text).text()

    def _known(self, text: str, item: NamedItem) -> type[C]:
        kind = self.entries.lookup(item.name.text)
        if kind is None:
            raise ExpressionError(text, item.name.start, self.unknown(item.name.text))
        return kind


CATALOGS: dict[str, Catalog[Any]] = {}
"""The catalogs that are loaded, by kind; each enters itself."""

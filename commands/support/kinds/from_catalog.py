"""Kinds whose entries are classes of a `naming` catalog."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vcpo_bench.commands.support.kinds.base import Kind, Listing, facts, heading
from vcpo_bench.naming.catalog import CATALOGS, Catalog
from vcpo_bench.naming.component import Component, parameters
from vcpo_bench.naming.entries import one_line
from vcpo_bench.naming.grammar import first_name
from vcpo_bench.naming.plugins import fault_of_plugin


class CatalogKind(Kind):
    """A kind with a catalog: its listing and its pages are read from the classes.

    Args:
        singular: The catalog's word for one entry.
        plural: The word for several.
        module: Dotted name of the module whose import makes the catalog.
        catalog: The catalog's word for one entry; default: `singular`.
        template: Whether the catalog has a template, known before it is imported.
    """

    def __init__(self, singular: str, plural: str, module: str, *, catalog: str = "", template: bool = False) -> None:
        self.singular, self.plural, self.module = singular, plural, module
        self._catalog, self._template = catalog or singular, template

    @property
    def catalog(self) -> Catalog[Any]:
        """The catalog."""
        importlib.import_module(self.module)
        return CATALOGS[self._catalog]

    def names(self) -> list[str]:
        """Names of the entries, in alphabetical order."""
        return self.catalog.names()

    def listing(self) -> Listing:
        """Name, summary and parameters with their defaults; parameters that every entry has stand in the note."""
        base = self.catalog.base
        common = _defaults(base, base.common)
        rows = [self._row(name) for name in self.names()]
        rows += [self._broken(plugin.name, plugin.error, plugin.origin) for plugin in self.catalog.broken]
        note = f"Every {self.singular} also takes: {common}" if common else ""
        return Listing((self.singular, "what it is", *self.between, self.remarks), rows, note)

    between: tuple[str, ...] = ()
    """Headings of columns between what an entry is and the last one."""
    remarks = "parameters"
    """Heading of the last column."""

    def _row(self, name: str) -> tuple[str, ...]:
        kind = self.catalog.get(name)
        try:
            return (name, self.summary(kind) or "(it has no summary)", *self.columns(name), self.remark(name))
        except Exception as error:
            if kind.__module__.startswith("vcpo_bench."):
                raise
            return self._broken(name, fault_of_plugin(error) or one_line(error), self.catalog.origin(name))

    def _broken(self, name: str, error: str, origin: str) -> tuple[str, ...]:
        return (name, f"BROKEN: {error}", *("-" for _ in self.between), origin)

    def columns(self, name: str) -> tuple[str, ...]:
        """What stands under `between` for an entry."""
        return ()

    def remark(self, name: str) -> str:
        """The last column of an entry."""
        kind = self.catalog.get(name)
        return _defaults(kind, [each for each in parameters(kind) if each not in kind.common]) or "-"

    def summary(self, kind: type[Component]) -> str:
        """What an entry is, in one line."""
        return kind.summary

    def page(self, name: str) -> list[str]:
        """Summary, particular facts, and parameters with values and legal values, of a name or an expression."""
        kind = self.catalog.get(first_name(name))
        component = None if name == kind.name else self.catalog.parse(name)
        pairs = [*self.particulars(kind), *shown_parameters(kind, component), *self.origin(kind.name)]
        return [*heading(component.text() if component else kind.name, self.summary(kind)), *facts(pairs)]

    def particulars(self, kind: type[Component]) -> list[tuple[str, str]]:
        """Facts that only entries of this kind have: label and text."""
        return []

    def write_new(self, name: str, folder: Path) -> list[Path]:
        """See `naming.template.write_new`."""
        from vcpo_bench.naming.template import write_new

        return write_new(self.catalog, name, folder)

    @property
    def has_template(self) -> bool:
        """Whether the catalog has a template."""
        return self._template

    def origin(self, name: str) -> list[tuple[str, str]]:
        """Where it is defined."""
        return [("defined in", self.catalog.origin(name))]


def shown_parameters(kind: type[Component], component: Component | None = None) -> list[tuple[str, str]]:
    """The parameters of a class, or of one object with the defaults that it leaves, and what is legal."""
    lines = []
    for name, (default, parameter) in parameters(kind).items():
        value, usual = default if component is None else getattr(component, name), ""
        if value != default:
            usual = f"default {parameter.write(default)}; "
        lines.append(("parameter", f"{name}={parameter.write(value)}  ({usual}{parameter.legal})"))
    return lines


def _defaults(kind: type[Component], names: Iterable[str]) -> str:
    """`n=12, percent=90`: some parameters of a class with their defaults."""
    known = parameters(kind)
    return ", ".join(f"{name}={known[name][1].write(known[name][0])}" for name in names)

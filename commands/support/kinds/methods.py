"""Methods, and the parts that can be added to them."""

from __future__ import annotations

from typing import Any

from vcpo_bench.commands.support.kinds.base import facts, heading
from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind, shown_parameters
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import first_name, read_item


class MethodKind(CatalogKind):
    """What a method expression may begin with."""

    between: tuple[str, ...] = ("acts",)
    remarks = "paper"

    def __init__(self) -> None:
        super().__init__("method", "methods", "vcpo_bench.methods", template=True)

    def columns(self, name: str) -> tuple[str, ...]:
        """Where it acts."""
        from vcpo_bench.methods import geometry_text

        return (geometry_text(name),)

    def remark(self, name: str) -> str:
        """The paper."""
        return _paper(self.catalog.get(name)) or "-"

    def one(self, text: str) -> Any:
        """The method of an expression; of a part that makes a method of its own, that method."""
        return self.catalog.parse(text)

    def page(self, name: str) -> list[str]:
        """Formula, parameters, remarks on implementations that differ, and the coefficient against the ratio."""
        from vcpo_bench.methods import METHODS, coefficient_curve, describe, draw_curve, geometry_of

        kind = self.catalog.entries.lookup(first_name(name))
        if kind is None or kind.name not in self.names():
            raise UsageError(METHODS.unknown(first_name(name), self.names(), self.singular))
        plain = name == kind.name
        method = None if plain else self.one(name)
        about = describe(kind.name)
        paper_parts = f"{kind.name}:paper adds the advantage and aggregation of the paper: {about.paper_parts}"
        lines = heading(kind.name if method is None else method.text(), kind.summary)
        lines += facts([("paper", _paper(kind)), ("acts on", about.acts_on), ("formula", kind.formula)])
        lines += facts(sorted(shown_parameters(kind, method if isinstance(method, kind) else None)))
        lines += facts(("ratio", f"{what}: current / {anchor}") for what, anchor in about.anchors.items())
        lines += facts([("needs", ", ".join(about.needs)), ("variant", paper_parts if about.paper_parts else "")])
        lines += facts(("differs", remark) for remark in kind.differences)
        lines += facts(self.origin(kind.name))
        drawn = about.expression if plain else getattr(method, "canonical", "")
        lines += facts([("acts", str(geometry_of(drawn)) if drawn else "")])
        if drawn:
            title = "  coefficient c of a token against its ratio (+: A > 0; -: |c|, A < 0; *: both)"
            lines += ["", title, *draw_curve(coefficient_curve(drawn))]
        return lines


class PartKind(MethodKind):
    """What can be added to a method with `+`."""

    between = ()
    remarks = "slot"

    def __init__(self) -> None:
        CatalogKind.__init__(self, "part", "parts", "vcpo_bench.methods", catalog="method")

    def columns(self, name: str) -> tuple[str, ...]:
        """Nothing between what it is and its slot."""
        return ()

    def names(self) -> list[str]:
        """Names in alphabetical order."""
        from vcpo_bench.methods import part_names

        return part_names()

    def remark(self, name: str) -> str:
        """The slot."""
        from vcpo_bench.methods import describe

        return describe(name).acts_on

    def one(self, text: str) -> Any:
        """The part of an expression."""
        return self.catalog.build(text, read_item(text))


def _paper(kind: Any) -> str:
    return f"{kind.reference} ({kind.year})" if kind.year else str(kind.reference)

"""Methods, and the parts that can be added to them."""

from __future__ import annotations

from pathlib import Path

from vcpo_bench.commands.support.kinds.base import Listing, PageKind, facts, heading


class MethodKind(PageKind):
    """What a method expression may begin with."""

    singular, plural, module = "method", "methods", "vcpo_bench.methods"

    def names(self) -> list[str]:
        """Names in alphabetical order."""
        from vcpo_bench.methods import method_names

        return method_names()

    def listing(self) -> Listing:
        """Name, summary and paper of each, and installed plug-ins that failed to load."""
        from vcpo_bench.methods import broken_plugins, describe

        rows = [(name, (one := describe(name)).summary, _paper(one.reference, one.year)) for name in self.names()]
        rows += [(one.name, f"BROKEN: {one.error}", one.origin) for one in broken_plugins()]
        return Listing((self.singular, "what it does", "paper"), rows)

    def page(self, name: str) -> list[str]:
        """Formula, parameters, remarks on implementations that differ, and the coefficient against the ratio."""
        from vcpo_bench.methods import coefficient_curve, describe, draw_curve

        if name not in self.names():
            raise self.unknown(name, self.names())
        one = describe(name)
        paper_parts = f"{name}:paper adds the advantage and aggregation of the paper: {one.paper_parts}"
        lines = heading(name, one.summary)
        lines += facts([("paper", _paper(one.reference, one.year)), ("acts on", one.acts_on), ("formula", one.formula)])
        lines += facts(("parameter", f"{each.name}={each.default}  ({each.legal})") for each in one.parameters)
        lines += facts(("ratio", f"{what}: current / {anchor}") for what, anchor in one.anchors.items())
        lines += facts([("needs", ", ".join(one.needs)), ("variant", paper_parts if one.paper_parts else "")])
        lines += facts(("differs", remark) for remark in one.differences)
        lines += facts([("defined in", one.origin)])
        if one.expression:
            title = "  coefficient c of a token against its ratio (+: A > 0; -: |c|, A < 0; *: both)"
            lines += ["", title, *draw_curve(coefficient_curve(one.expression))]
        return lines

    def write_new(self, name: str, folder: Path) -> list[Path]:
        """Write a method and its test."""
        from vcpo_bench.methods import new_method

        return new_method(name, folder)


class PartKind(MethodKind):
    """What can be added to a method with `+`."""

    singular, plural = "part", "parts"

    def names(self) -> list[str]:
        """Names in alphabetical order."""
        from vcpo_bench.methods import part_names

        return part_names()

    def listing(self) -> Listing:
        """Name, summary and slot of each."""
        from vcpo_bench.methods import describe

        rows = [(name, (one := describe(name)).summary, one.acts_on) for name in self.names()]
        return Listing((self.singular, "what it does", "slot"), rows)

    def write_new(self, name: str, folder: Path) -> list[Path]:
        """There is no template for a part."""
        raise self.no_template(name)


def _paper(reference: str, year: int) -> str:
    return f"{reference} ({year})" if year else reference

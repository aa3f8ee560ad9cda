"""Presets: the settings files of `vcpo-bench run --config NAME`."""

from __future__ import annotations

from itertools import takewhile

from vcpo_bench.commands.support.kinds.base import Kind, Listing
from vcpo_bench.configs import PRESETS


class PresetKind(Kind):
    """The presets that ship with the package."""

    singular, plural = "preset", "presets"

    def listing(self) -> Listing:
        """The presets, with the comment that each begins with."""
        rows = [(name, _comment(self.page(name))) for name in self.names()]
        return Listing(("preset", "what it is for"), rows)

    def names(self) -> list[str]:
        """Names of the presets, in alphabetical order."""
        from vcpo_bench.bench.cells.preset_file import preset_names

        return preset_names(PRESETS)

    def page(self, name: str) -> list[str]:
        """The file itself."""
        if name not in self.names():
            raise self.unknown(name, self.names())
        return (PRESETS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()


def _comment(lines: list[str]) -> str:
    """The comment at the top of a file, as one line."""
    text = " ".join(line.lstrip("#") for line in takewhile(lambda line: line.startswith("#"), lines))
    return " ".join(text.split())

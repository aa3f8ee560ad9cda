"""The console of every table and live view: it prints names, errors and episodes as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from vcpo_bench.reports.terminal.printable import printable


class PlainConsole(Console):
    """A console that prints text as it is: no markup, no emoji codes, no control characters.

    Args:
        stderr: Print to the error output.
        width: Columns; None: those of the terminal.
    """

    def __init__(self, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """A plain string as it will be shown, so that its width is known."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of something to print."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

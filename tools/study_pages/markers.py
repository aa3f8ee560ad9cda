"""Parts of a page that a tool writes, between `<!-- made by TOOL: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

from collections.abc import Mapping

BEGIN, END = "<!-- made by {}: {} -->\n", "<!-- end -->\n"


def filled(text: str, parts: Mapping[str, str], tool: str) -> str:
    """A page with its parts made anew.

    Args:
        text: The page.
        parts: By name.
        tool: Path of the program that writes them, such as `tools/scorecard/page.py`.

    Raises:
        ValueError: The page has no marker for a part.
    """
    for name, part in parts.items():
        begin = BEGIN.format(tool, name)
        if begin not in text:
            raise ValueError(f"the page has no line {begin!r}")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{part}\n{END}{rest.split(END, 1)[1]}"
    return text

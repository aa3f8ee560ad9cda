"""Errors as they are recorded: without the names of people and folders that absolute paths hold."""

from __future__ import annotations

import re
from pathlib import Path

_QUOTED = re.compile(r"""(?P<quote>['"])(?P<path>/[^'"\n]*/[^'"\n]*)(?P=quote)""")
_BARE = re.compile(r"""(?<![\w/.:~-])/(?:[^\s/'"`,;:()<>|]+/)+[^\s/'"`,;:()<>|]*""")
_OPEN = ("site-packages", "dist-packages")
_OURS = "vcpo_bench"
_CHECKOUT = f"{Path(__file__).resolve().parents[2]}/"
"""Where this package lies, whatever the folder of a checkout is called."""


def without_paths(text: str) -> str:
    """A text with every absolute path cut down to its part inside a package, or to its last name; URLs stay.

    A path with blanks that stands without quotes is known only if it is below the home or the present folder.
    """
    text = text.replace(_CHECKOUT, f"/_/{_OURS}/")
    for folder in (str(Path.home()), str(Path.cwd())):
        if " " in folder:
            text = text.replace(folder, "/_")
    text = _QUOTED.sub(lambda match: f"{match['quote']}{_short(match['path'])}{match['quote']}", text)
    return _BARE.sub(lambda match: _short(match[0]), text)


def _short(path: str) -> str:
    parts = path.rstrip("/").split("/")
    for position in range(len(parts) - 2, 0, -1):
        if parts[position] == _OURS or parts[position - 1] in _OPEN:
            return "/".join(parts[position:])
    return f".../{parts[-1]}"

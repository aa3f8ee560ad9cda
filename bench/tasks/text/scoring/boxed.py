r"""The answer a response commits itself to: what is in its last `\boxed{...}` or between its last answer tags."""

import re

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_BARE = re.compile(r"[^\s$]*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_OPEN, _CLOSE = "<answer>", "</answer>"


def last_boxed(text: str) -> str | None:
    r"""The content of the last `\boxed{...}` (also `\fbox`, and `\boxed 5`), braces balanced.

    None if there is no box or the last one never closes: an earlier box does not count, the response went on.
    """
    start = max(text.rfind(r"\boxed"), text.rfind(r"\fbox"))
    match = _BOX.match(text, start) if start >= 0 else None
    if match is None:
        return None
    if not text.startswith("{", match.end()):
        bare = _BARE.match(text, match.end())
        return bare[0] if bare and bare[0] else None
    depth = 0
    for brace in _BRACE.finditer(text, match.end()):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[match.end() + 1 : brace.start()]
    return None


def last_tagged(text: str) -> str | None:
    """What stands between the last `<answer>` that is closed and its `</answer>`; None if there is none."""
    end = text.rfind(_CLOSE)
    start = text.rfind(_OPEN, 0, end) if end >= 0 else -1
    return text[start + len(_OPEN) : end] if start >= 0 else None

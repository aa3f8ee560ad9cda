"""Who says whether two mathematical answers are the same: this project's scorer, or the package math-verify."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer
from vcpo_bench.errors import UsageError

Judge = Callable[[str, str], bool]
"""Whether the first answer, the right one, and the second are the same."""

OWN, PACKAGE = "own", "math-verify"
SECONDS = 2
"""After so long math-verify has said no; it bounds its time by signals, which only the main thread receives."""


def judge_named(text: str) -> tuple[str, Judge]:
    """A judge and its full name, which for math-verify holds the version: another one may judge differently.

    Args:
        text: `own`, `math-verify`, or `math-verify/0.9.0` to insist on a version.

    Raises:
        UsageError: There is no such judge, the package is missing or of another version.
    """
    if text == OWN:
        return OWN, same_answer
    package, _, wanted = text.partition("/")
    if package != PACKAGE:
        raise UsageError(f"math(judge={text}): choose own or math-verify")
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise UsageError(f"math(judge={text}): the package is missing: pip install math-verify") from error
    if wanted not in ("", found):
        raise UsageError(f"math(judge={text}): installed is {found}; pip install {PACKAGE}=={wanted}, or leave it out")
    return f"{PACKAGE}/{found}", _verified


def _verified(right: str, given: str) -> bool:
    """What math-verify says of two boxed answers; no where it cannot read one, fails or takes too long."""
    package = import_module("math_verify")
    one, other = (package.parse(f"$\\boxed{{{text}}}$", parsing_timeout=SECONDS) for text in (right, given))
    return bool(package.verify(one, other, timeout_seconds=SECONDS))

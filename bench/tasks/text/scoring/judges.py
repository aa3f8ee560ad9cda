"""Judges of whether two mathematical answers are the same: this project's scorer, or the package math-verify."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

from vcpo_bench.bench.tasks.text.scoring.confined import confined_judge
from vcpo_bench.bench.tasks.text.scoring.math_answers import same_answer
from vcpo_bench.errors import UsageError

Judge = Callable[[str, str], bool]
"""Whether the first answer, the right one, and the second are the same."""

OWN, PACKAGE = "own", "math-verify"


def full_name(judge: str) -> str:
    """The name of a judge, for math-verify with its version: another one may judge differently.

    Args:
        judge: `own`, `math-verify`, or `math-verify/0.9.0` to insist on a version.

    Raises:
        UsageError: There is no such judge, or the package is missing or has another version.
    """
    if judge == OWN:
        return OWN
    package, _, wanted = judge.partition("/")
    if package != PACKAGE:
        raise UsageError(f"math(judge={judge}): choose own or math-verify")
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise UsageError(f"math(judge={judge}): the package is missing: pip install math-verify") from error
    if wanted not in ("", found):
        raise UsageError(f"math(judge={judge}): {found} is installed; pip install {PACKAGE}=={wanted}, or leave it out")
    return f"{PACKAGE}/{found}"


def judge_named(name: str) -> Judge:
    """The judge with that full name."""
    return same_answer if name == OWN else _verified


def _verified(right: str, given: str) -> bool:
    """The verdict of math-verify on two boxed answers; False where it cannot read one, fails or meets a limit."""
    return confined_judge(PACKAGE).right(right, given)

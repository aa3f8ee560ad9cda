"""A test that needs another package says where it runs, and it does run there."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS.parent / ".ci" / "integrations.d"


def skips(path: Path) -> Iterator[str]:
    """The reason of every `pytest.importorskip` of a file; empty where none is given."""
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "importorskip" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "importorskip":
            given = {one.arg: one.value for one in node.keywords}
            reason = given.get("reason")
            yield reason.value if isinstance(reason, ast.Constant) and isinstance(reason.value, str) else ""


def users(path: Path) -> list[Path]:
    """The files of tests that a skip in this file skips; one that says itself where it runs is not asked for here."""
    if path.parent.name != "helpers":
        return [path] if path.name.startswith("test_") else []
    wanted = re.compile(rf"^(import|from) {path.stem}\b", re.MULTILINE)
    found = [one for one in TESTS.rglob("test_*.py") if wanted.search(one.read_text())]
    return [one for one in found if not any(True for _ in skips(one))]


def run_by(name: str) -> list[str]:
    """Patterns of the files of tests that a script runs."""
    return re.findall(r"tests/[^\s:)\"]*\.py", (SCRIPTS / f"{name}.sh").read_text())


SKIPPING = sorted(path for path in TESTS.rglob("*.py") if any(True for _ in skips(path)))


@pytest.mark.parametrize("path", SKIPPING, ids=lambda path: path.stem)
def test_what_is_skipped_runs_somewhere(path: Path) -> None:
    for reason in skips(path):
        told = re.fullmatch(r"runs in \.ci/integrations (\w+)", reason)
        assert told, f"importorskip without 'runs in .ci/integrations NAME': {reason!r}"
        patterns = run_by(told[1])
        for user in users(path):
            name = user.relative_to(TESTS.parent).as_posix()
            assert any(fnmatch(name, pattern) for pattern in patterns), f"{told[1]}.sh does not run {name}"

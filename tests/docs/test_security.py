"""SECURITY.md promises only what a test shows."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
PROMISES = PAGE.partition("## What holds, and its test")[2].partition("\n\n|")[2].partition("\n\n")[0].splitlines()[2:]


def test_every_promise_names_tests_that_exist() -> None:
    assert len(PROMISES) > 20
    for promise in PROMISES:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)
        assert named, promise
        for file, name in named:
            assert name in functions(ROOT / file), promise


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`((?:tests|\.ci)/[\w/.]+)", PAGE)
    assert [file for file in named if not (ROOT / file).exists()] == []


def functions(file: Path) -> set[str]:
    return {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}

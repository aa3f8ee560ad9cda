"""Every flag of a command that a page or a README shows is a flag of that verb."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from vcpo_bench.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "studies").glob("**/*.md")),
]
COMMAND = re.compile(r"vcpo-bench ((?:[a-z][a-z-]* )?[a-z][a-z-]*)\b([^`\n]*(?:\\\n[^`\n]*)*)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def shown(page: Path) -> Iterator[tuple[str, str]]:
    """Verb and flag of every command on a page; what follows a pipe or a comment is no part of it."""
    for words, rest in COMMAND.findall(page.read_text(encoding="utf-8")):
        for flag in FLAG.findall(re.split(r"\||#|&&|;", rest)[0]):
            yield words, flag


def flags(words: str) -> set[str]:
    """All flags of a verb, and of a verb's own verb."""
    command = get_command(app)
    found = {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    for word in words.split():
        command = getattr(command, "commands", {}).get(word)
        if command is None:
            break
        found |= {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}
    return found | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_flags_that_exist(page: Path) -> None:
    unknown = {f"{words} {flag}" for words, flag in shown(page) if flag not in flags(words)}
    assert not unknown


def test_flags_are_found_on_pages() -> None:
    assert {("run", "--staleness"), ("run", "--launcher")} <= {each for page in PAGES for each in shown(page)}

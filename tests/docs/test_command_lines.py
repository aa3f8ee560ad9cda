"""Every command line of ours in a page, script, notebook or preset can be typed: its verb and its flags exist.

Pages of studies and the list of changes are records: they show what could be typed then, and are left out.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import VERBS, click_command

from vcpo_bench.commands.support.verb import GROUPS

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(path for path in ROOT.glob("*.md") if path.stem != "CHANGELOG"),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "studies" not in path.parts),
]
OTHERS = [
    *sorted((ROOT / "configs").glob("*.yaml")),
    *sorted((ROOT / "examples").rglob("*.sh")),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
    *sorted((ROOT / ".github").rglob("*.yml")),
    *sorted(path for path in (ROOT / ".ci").rglob("*") if path.suffix in ("", ".sh") and path.is_file()),
    ROOT / "Dockerfile",
]
COMMAND = re.compile(r"(?<![\w/-])vcpo-bench ([^`\n]+)")
SPAN = re.compile(r"`([^`\n]+)`")
END = re.compile(r" #|\||&&|;|[)\"]?\\n")
"""Where a command line ends: a comment, a pipe, the next command, a string of a notebook."""
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def code(page: Path) -> Iterator[str]:
    """The lines of a page that are code: blocks that are fenced or indented, and spans between backticks."""
    fenced = False
    for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line
        else:
            yield from SPAN.findall(line)


def commands(file: Path) -> Iterator[list[str]]:
    """The words of every command line after `vcpo-bench`."""
    lines = code(file) if file.suffix == ".md" else file.read_text(encoding="utf-8").splitlines()
    for line in lines:
        for rest in COMMAND.findall(line):
            words = [word.rstrip(".,:)") for word in END.split(rest)[0].split()]
            yield [word for word in words if word]


def problem(words: list[str]) -> str:
    """Why a command line cannot be typed; empty: it can."""
    verb, rest = " ".join(words[:1]), words[1:]
    if verb in GROUPS and rest[:1] not in ([], ["--help"]):
        verb, rest = f"{verb} {rest[0]}", rest[1:]
    if verb in ("", "--version", "--help", *GROUPS) or verb.split()[-1].isupper():
        return ""
    if verb not in VERBS:
        return f"there is no {verb!r}"
    flags = {flag for one in click_command(verb).params for flag in (*one.opts, *one.secondary_opts)} | {"--help"}
    return "".join(f"{verb} has no {flag}" for flag in FLAG.findall(" ".join(rest)) if flag not in flags)


@pytest.mark.parametrize("file", [*PAGES, *OTHERS], ids=lambda file: str(file.relative_to(ROOT)))
def test_what_a_file_shows_can_be_typed(file: Path) -> None:
    wrong = {" ".join(words): why for words in commands(file) if (why := problem(words))}
    assert not wrong


def test_command_lines_are_found_and_judged() -> None:
    shown = [" ".join(words[:2]) for file in (*PAGES, *OTHERS) for words in commands(file)]
    assert {"run --methods", "lab warmup", "results merge"} <= set(shown)
    assert problem(["run", "--stalness", "1"]) == "run has no --stalness"
    assert problem(["warmup", "--task", "walk"]) == "there is no 'warmup'"
    assert problem(["lab", "warmup", "--task", "walk"]) == ""

"""What `--help` says, for every verb: complete, in whole phrases, with examples that can be pasted."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import VERBS, call, click_command

import vcpo_bench
from vcpo_bench.commands.support.verb import GROUPS, Verb, find_verbs, folder_of

COMMANDS: dict[str, Any] = {name: click_command(name) for name in VERBS}
WIDTH = 80


@pytest.fixture(autouse=True)
def _narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def test_every_file_of_a_folder_is_a_verb_under_its_own_name() -> None:
    folder = Path(vcpo_bench.__file__).parent / "commands"
    files = [path.relative_to(folder) for path in folder.rglob("*.py") if "support" not in path.parts]
    names = {" ".join(path.with_suffix("").parts).replace("_", "-") for path in files if path.stem != "__init__"}
    assert set(VERBS) == names
    assert {path.parts[0] for path in files if len(path.parts) > 1} == set(GROUPS)


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_the_help_lists_the_verbs_in_the_stated_order(group: str) -> None:
    shown = re.findall(r"^│ ([a-z][a-z-]+)  ", call(*filter(None, [group]), "--help").output, flags=re.MULTILINE)
    wanted = [name for name, verb in find_verbs(group).items() if not verb.hidden]
    assert shown == [*wanted, *(GROUPS if not group else ())]


@pytest.mark.parametrize("group", GROUPS)
def test_the_summary_of_a_group_fits_the_list(group: str) -> None:
    assert f"{group}  " in call("--help").output
    line = next(line for line in call("--help").output.splitlines() if line.startswith(f"│ {group} "))
    assert line.rstrip("│ ").endswith((folder_of(group).__doc__ or "").strip()), "it wraps"


@pytest.mark.parametrize("name", VERBS)
def test_the_help_fits_80_columns_and_says_something_of_every_option(name: str) -> None:
    shown = call(*name.split(), "--help")
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.output.splitlines())) <= WIDTH
    assert "…" not in shown.output, "something is cut off"
    for parameter in COMMANDS[name].params:
        words = parameter.help or ""
        assert re.match(r"[A-Z]", words), f"{name} {parameter.name}: a phrase begins with a capital: {words!r}"
        assert words.endswith("."), f"{name} {parameter.name}: {words!r}"
        assert len(words.split()) >= 2, f"{name} {parameter.name}: {words!r} does not stand alone"


@pytest.mark.parametrize("name", VERBS)
def test_the_first_sentence_fits_the_list_of_verbs(name: str) -> None:
    summary = COMMANDS[name].help.split("\n\n")[0]
    assert summary.endswith(".")
    group = " ".join(name.split()[:-1])
    beside = [one for one, verb in find_verbs(group).items() if not verb.hidden]
    assert len(summary) <= WIDTH - 2 - 2 - max(map(len, beside)) - 2, "it wraps in an 80-column terminal"


@pytest.mark.parametrize(("name", "verb"), VERBS.items())
def test_every_example_can_be_typed(name: str, verb: Verb) -> None:
    assert verb.examples
    shown = call(*name.split(), "--help").output
    for example in verb.examples:
        assert example in shown, "the example wraps, or is missing"
        program, *words = shlex.split(example)
        typed = name.split()
        assert [program, *words[: len(typed)]] == ["vcpo-bench", *typed]
        COMMANDS[name].make_context(name, words[len(typed) :])  # raises for an option or argument there is not


@pytest.mark.parametrize("name", ["", *GROUPS, *VERBS])
def test_the_help_shows_no_names_of_python_types(name: str) -> None:
    assert not re.findall(r"<(?:str|bool|int|float|[Pp]ath|file|list.*?|choice)>", call(*name.split(), "--help").output)


def test_the_version_is_one_line() -> None:
    assert call("--version").stdout == f"vcpo-bench {vcpo_bench.__version__}\n"


def test_shells_complete_the_verbs() -> None:
    words = {"_VCPO_BENCH_COMPLETE": "complete_bash", "COMP_WORDS": "vcpo-bench re", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['vcpo-bench']; from vcpo_bench.cli import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True, timeout=60
    )
    assert shown.stdout.split() == ["report", "results"]

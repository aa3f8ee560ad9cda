"""Adding a verb is one file, at the top or in a group; what is typed in the wrong place is told where it is."""

import re
import sys
from pathlib import Path

import pytest
from command_line import call

import vcpo_bench.commands
from vcpo_bench.commands.support.verb import find_verbs, folder_of

VERB = """
import typer
from vcpo_bench.commands.support.verb import Verb

def greet(name: str) -> None:
    \"\"\"Greet someone,
    politely.

    More.
    \"\"\"
    typer.echo(f"hello {name}")

VERB = Verb(greet, examples=("vcpo-bench GROUP say-hello you",))
"""


@pytest.mark.parametrize("group", ["", "results", "lab"])
def test_a_file_in_the_folder_is_a_verb(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(find_verbs(group))
    (tmp_path / "say_hello.py").write_text(VERB.replace("GROUP", group))
    (tmp_path / "helpers").mkdir()
    package = folder_of(group)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{package.__name__}.say_hello", raising=False)
    assert set(find_verbs(group)) == {*before, "say-hello"}

    place = filter(None, [group])
    typed = [*place, "say-hello"]
    assert call(*typed, "you").stdout == "hello you\n"
    shown = call(*typed, "--help").stdout
    assert "Greet someone, politely." in shown
    assert "Example:" in shown
    assert "say-hello" in call(*typed[:-1], "--help").stdout


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("check results", "vcpo-bench check: there is no such command; write vcpo-bench results check"),
        ("lab check", "vcpo-bench lab check: there is no such command; write vcpo-bench results check"),
        ("results run", "vcpo-bench results run: there is no such command; write vcpo-bench run"),
        ("lab results", "vcpo-bench lab results: there is no such command; write vcpo-bench results"),
        ("chekc", "vcpo-bench chekc: there is no such command; did you mean vcpo-bench results check?"),
        ("qqq", "vcpo-bench qqq: there is no such command; vcpo-bench --help lists them"),
    ],
)
def test_a_command_that_is_elsewhere_is_one_line(typed: str, line: str) -> None:
    refused = call(*typed.split())
    assert (refused.exit_code, refused.stdout, refused.stderr) == (2, "", f"error: {line}\n")


def test_no_verb_prints_past_it() -> None:
    files = [*Path(next(iter(vcpo_bench.commands.__path__))).rglob("*.py")]
    assert len(files) > 20
    past = re.compile(r"typer\.(?:s?echo|secho)|(?<![\w.])print\(|(?<!Plain)Console\(")
    assert [file.name for file in files if past.search(file.read_text())] == ["say.py"]

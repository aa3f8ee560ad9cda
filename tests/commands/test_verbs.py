"""Adding a verb is one file."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import vcpo_bench.commands
from vcpo_bench.commands.support.verb import Group, attach_verbs, find_verbs

VERB = """
import typer
from vcpo_bench.commands.support.verb import Group, Verb

def greet(name: str) -> None:
    \"\"\"Greet someone,
    politely.

    More.
    \"\"\"
    typer.echo(f"hello {name}")

VERB = Verb(greet, Group.READ, 99, examples=("vcpo-bench say-hello you",))
"""


def test_a_file_in_the_folder_is_a_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(find_verbs())
    (tmp_path / "say_hello.py").write_text(VERB)
    (tmp_path / "helpers").mkdir()
    monkeypatch.setattr(vcpo_bench.commands, "__path__", [*vcpo_bench.commands.__path__, str(tmp_path)])
    verbs = find_verbs()
    assert set(verbs) == {*before, "say-hello"}
    assert [name for name, verb in verbs.items() if verb.group is Group.READ][-1] == "say-hello"

    app = typer.Typer()
    attach_verbs(app)
    assert CliRunner().invoke(app, ["say-hello", "you"]).stdout == "hello you\n"
    shown = CliRunner().invoke(app, ["say-hello", "--help"]).stdout
    assert "Greet someone, politely." in shown
    assert "Example:" in shown

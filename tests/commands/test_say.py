"""Verbs print through one function."""

import re
from pathlib import Path

import vcpo_bench.commands


def test_no_verb_prints_past_it() -> None:
    files = [*Path(next(iter(vcpo_bench.commands.__path__))).rglob("*.py")]
    assert len(files) > 20
    past = re.compile(r"typer\.(?:s?echo|secho)|(?<![\w.])print\(|(?<!Plain)Console\(")
    assert [file.name for file in files if past.search(file.read_text())] == ["say.py"]

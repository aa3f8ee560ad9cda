"""Everything that is written for readers replaces its file as a whole: a failure leaves the good one alone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vcpo_bench.cli import app

SLOW = [
    ("report", "{run}", "--html", "{out}/page.html"),
    ("report", "{run}", "--html", "{out}/page.html", "--figures", "icml"),
    ("report", "{run}", "--html", "{out}/page.html", "--pdf", "{out}/page.pdf"),
    ("results", "export", "{run}", "--out", "{out}", "--as", "latex"),
    ("results", "diff", "{run}", "{run}", "--html", "{out}/diff.html"),
]
COMMANDS = [
    *(pytest.param(words, marks=pytest.mark.slow) for words in SLOW),
    ("results", "export", "{run}", "--out", "{out}", "--as", "csv"),
    ("results", "export", "{run}", "--out", "{out}", "--as", "parquet"),
    ("lab", "analyze", "collapse", "{run}", "--out", "{out}"),
    ("diagnose", "{cell}", "--html", "{out}/run.html"),
    ("show", "{run}"),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, make_results: Callable[..., Path]) -> Path:
    return make_results(tmp_path_factory.mktemp("run"), methods=("vcpo",), lags=(1,), seeds=(0,), steps=20)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_fails_leaves_every_file_as_it_was(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    cell = next(path for path in (run / "cells").iterdir() if "vcpo" in path.name)
    words = [word.format(run=run, out=tmp_path, cell=cell) for word in command]
    written = run if command[0] == "show" else tmp_path

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in written.rglob("*") if path.is_file()}

    before = contents()
    first = CliRunner().invoke(app, words)
    assert first.exit_code == 0, first.output
    good = contents()
    assert good.keys() - before.keys() or command[0] == "show"
    for path in good.keys() - before.keys():
        path.write_bytes(b"good")
    kept = contents()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    second = CliRunner().invoke(app, words)
    assert ("could not be written" in second.stderr) if command[0] == "show" else (second.exit_code != 0), second.output
    assert contents() == kept

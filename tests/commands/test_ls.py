"""`vcpo-bench ls`, for every kind."""

import json
from dataclasses import replace
from itertools import takewhile

import pytest
from command_line import call

from vcpo_bench.commands.support.kinds.find import kinds
from vcpo_bench.configs import PRESETS
from vcpo_bench.methods import METHODS
from vcpo_bench.naming.entries import Broken

WORDS = [kind.plural for kind in kinds()]


@pytest.fixture(autouse=True)
def _no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("word", WORDS)
def test_every_entry_is_one_line_in_a_pipe_and_fits_80_columns_on_a_terminal(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kind,) = (kind for kind in kinds() if kind.plural == word)
    found = kind.listing()
    assert found.rows
    assert all(len(row) == len(found.columns) and all(map(str, row)) for row in found.rows), "no cell is empty"
    assert len({row[0] for row in found.rows}) == len(found.rows)

    piped = call("ls", word).output.splitlines()
    for row in found.rows:
        assert any(all(str(cell) in line for cell in row) for line in piped), row
    monkeypatch.setenv("COLUMNS", "80")
    narrow = call("ls", word).output.splitlines()
    assert max(map(len, narrow)) <= 80
    named = [row[0] for row in found.rows]
    assert [line for line in narrow[2 : 2 + len(named)] if not line.startswith(tuple(named))] == []

    listed = json.loads(call("ls", word, "--json").stdout)
    assert [tuple(row.values()) for row in listed] == list(found.rows)


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("methods", "VESPO 2602.10693 (2026)"),
        ("parts", "baseline"),
        ("tasks", "language model"),
        ("trackers", "project=vcpo-bench"),
        ("samplers", "slots=0"),
        ("optimizers", "beta2=0.999"),
        ("regimes", "Every regime also takes: publish_every"),
        ("analyses", "Which runs collapsed"),
        ("presets", "A first look"),
        ("detectors", "token_ess"),
    ],
)
def test_lists(word: str, shown: str) -> None:
    assert shown in call("ls", word).output


def test_without_a_kind_the_kinds_are_listed() -> None:
    shown = call("ls")
    assert shown.exit_code == 0, shown.output
    lines = {line.split()[0]: line for line in shown.output.splitlines() if line.strip()}
    assert set(WORDS) <= set(lines)
    assert "new method NAME" in lines["methods"]
    assert "new" not in lines["parts"]


def test_a_broken_plugin_is_listed_among_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = [Broken("odd", "entry point odd", "ValueError: odd")]
    monkeypatch.setattr(METHODS, "_entries", replace(METHODS.entries, broken=odd))
    for word in ("methods", "parts"):
        assert "BROKEN: ValueError: odd" in call("ls", word).output


def test_the_singular_is_understood() -> None:
    assert call("ls", "preset").output == call("ls", "presets").output


def test_an_unknown_kind_is_one_line_with_the_closest() -> None:
    result = call("ls", "taks")
    assert result.exit_code == 2
    known = f"Known: {', '.join(sorted(WORDS))}"
    assert result.stderr == f"error: unknown kind 'taks'; did you mean tasks or trackers or trainers? {known}\n"


def test_presets_are_described_in_full() -> None:
    found = {row["preset"]: row["what_it_is_for"] for row in json.loads(call("ls", "presets", "--json").stdout)}
    for name, text in found.items():
        lines = (PRESETS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
        comment = list(takewhile(lambda line: line.startswith("#"), lines))
        assert text == " ".join(" ".join(line[1:] for line in comment).split())
    assert any(len(text) > 200 for text in found.values())

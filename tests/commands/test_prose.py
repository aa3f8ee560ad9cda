"""Sentences on a terminal are wrapped between words; what people copy, columns and pipes are left alone."""

from __future__ import annotations

import pytest

from vcpo_bench.commands.support import say as module

SENTENCE = "    + share of tokens clipped by the loss is 0 in all of 240 rows, whatever the lag is"
COPIED = [
    "  1. trainer.one=1 trainer.two=2 trainer.three=3",
    "vcpo-bench run --methods vcpo,clip,vespo",
    "Try next, from the last checkpoint before step 90 (trainer.resume_mode=resume_path)",
    '  load_plugin("/a/folder/with/a/long/name.py")',
    "  actor.rejection_sampling: {level: token, action: mask}",
    "  [trainer.loss] token_mask_low = 0.125",
    "/a/folder/with/a/long/name/that/no/terminal/holds.jsonl",
    "a    1.0  b  2.0  c",
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is one of 30 columns."""
    monkeypatch.setattr(module, "_columns", lambda: 30)


@pytest.mark.usefixtures("terminal")
def test_sentences_fit_the_terminal_under_a_hanging_indent(capsys: pytest.CaptureFixture[str]) -> None:
    module.say_prose(SENTENCE)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 30
    assert " ".join(line.strip() for line in lines) == SENTENCE.strip()
    assert all(line.startswith("      ") for line in lines[1:])


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("line", COPIED)
def test_what_people_copy_stays_on_its_line(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    module.say_prose(line)
    assert capsys.readouterr().out == line + "\n"


def test_a_pipe_gets_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    module.say_prose(SENTENCE)
    assert capsys.readouterr().out == SENTENCE + "\n"

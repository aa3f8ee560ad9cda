"""What a run says at its end, where there are seeds enough to decide, and where there are not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.results import load
from vcpo_bench.commands.support.next_step import say_what_next


def said(out: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    results = load(out)
    say_what_next(out, results, scoreboard(results), quiet=False)
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(("seeds", "words"), [(ENOUGH - 1, "too few seeds to tell it from"), (ENOUGH, "after Holm")])
def test_what_the_seeds_decide_at_each_lag(
    make_results: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], seeds: int, words: str
) -> None:
    lines = said(make_results(tmp_path, ("vcpo", "tis"), (1, 16), tuple(range(seeds)), 30, controls=False), capsys)
    answers = [line for line in lines if line.startswith("Lag ")]
    assert [line.split(":")[0] for line in answers] == ["Lag 1", "Lag 16"]
    assert all(words in line for line in answers)
    assert lines[2].startswith("Next: run the same grid with --")
    assert lines[-1].startswith("next: vcpo-bench report")


def test_of_one_method_the_reward_is_said(
    make_results: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(make_results(tmp_path, ("vcpo",), (16,), (0,), 30, controls=False), capsys)
    assert lines[0].startswith("chain, highest final reward: vcpo ")
    assert any(" and 1 folder in " in line for line in lines)

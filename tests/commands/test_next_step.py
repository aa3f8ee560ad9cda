"""What a run says at its end, where there are seeds enough to decide, and where there are not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from vcpo_bench.analysis.commands.compare import analyze_compare
from vcpo_bench.analysis.comparison.answers import DISAGREEMENT, in_short
from vcpo_bench.analysis.comparison.scoreboard import scoreboard
from vcpo_bench.analysis.intervals import ENOUGH
from vcpo_bench.analysis.results import load
from vcpo_bench.commands.support.next_step import say_what_next
from vcpo_bench.reports.document import Prose
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.in_short import blocks as in_short_blocks
from vcpo_bench.reports.study import Study


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


def test_where_tasks_disagree_the_end_of_a_run_and_the_report_say_that_in_place_of_the_answer(
    make_results: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At one lag of two: the other keeps its answer."""
    out = make_results(tmp_path, ("vcpo", "tis"), (1, 16), (0, 1, 2), 30, controls=False, tasks=("chain", "walk"))
    found = analyze_compare(load(out))
    whole = found.tables["by_task"]
    rows = whole[whole["staleness"] == 1]
    found.statements.append(found.finding(DISAGREEMENT, "Lag 1: the tasks disagree.", "by_task", rows, ("staleness",)))
    assert [one.text.split(";")[0].split(" ends")[0] for one in in_short(found)] == [
        "Lag 1: the tasks disagree.",
        "Lag 16: vcpo",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vcpo_bench.analysis.commands.compare.analyze_compare", lambda results: found)
        lines = [line for line in said(out, capsys) if line.startswith("Lag ")]
    assert lines == [one.text for one in in_short(found)]
    study = Study(load(out))
    study.adopt("compare", found)
    prose = [one for one in in_short_blocks(study, Ledger()) if isinstance(one, Prose) and one.bullets]
    assert lines == [line.text for one in prose for line in one.sentences]


def test_of_one_method_the_reward_is_said(
    make_results: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(make_results(tmp_path, ("vcpo",), (16,), (0,), 30, controls=False), capsys)
    assert lines[0].startswith("chain, highest final reward: vcpo ")
    assert any(" and 1 folder in " in line for line in lines)

"""`show --fail-if`: which rows of a scoreboard meet a condition."""

import pandas as pd
import pytest

from vcpo_bench.analysis.comparison.conditions import read_condition, rows_that_meet
from vcpo_bench.errors import UsageError

BOARD = pd.DataFrame(
    [
        ("chain", "vcpo", "fifo", 16, 3e-4, False, 0.8, 0.7, 0, 4, 4),
        ("chain", "clip(high=0.28,low=0.2)", "fifo", 16, 3e-4, False, 0.6, float("nan"), 1, 4, 4),
        ("walk", "vcpo", "fifo", 1, 1e-4, False, 0.5, 0.4, 0, 4, 4),
        ("chain", "reinforce", "fifo", 16, 3e-4, True, 0.0, 0.0, 3, 4, 4),
    ],
    columns=[
        *("task", "method", "regime", "staleness", "lr", "control"),
        *("final_reward", "final_reward_low", "collapsed", "judged", "total"),
    ],
)


def met(text: str) -> list[str]:
    return rows_that_meet(read_condition(text, list(BOARD.columns)), BOARD)


def test_controls_count_only_where_they_are_named() -> None:
    assert len(met("collapsed > 0")) == 1
    assert len(met("control=true: collapsed > 0")) == 1
    assert met("control=true: collapsed>0")[0].startswith("chain, fifo, lag 16, lr 3e-4, reinforce: collapsed = 3")


def test_rows_are_chosen_by_what_stands_before_the_colon() -> None:
    assert met("method=vcpo: final_reward < 0.9") == [
        "chain, fifo, lag 16, lr 3e-4, vcpo: final_reward = 0.8 (method=vcpo: final_reward < 0.9)",
        "walk, fifo, lag 1, lr 1e-4, vcpo: final_reward = 0.5 (method=vcpo: final_reward < 0.9)",
    ]
    assert len(met("method=vcpo, lag=16: final_reward <= 0.8")) == 1
    assert not met("lr=0.0001: final_reward > 0.5")
    assert len(met("method=clip(high=0.28,low=0.2): final_reward >= 0.6")) == 1


def test_what_cannot_be_judged_does_not_pass() -> None:
    (line,) = met("method=clip(high=0.28,low=0.2): final_reward_low < 0.1")
    assert "final_reward_low is missing" in line


@pytest.mark.parametrize(("text", "met_by"), [("> 0", 1), ("> 2", 1), ("> 3", 0), ("< 3", 1), ("<= 0", 1)])
def test_cells_that_could_not_be_judged_may_have_collapsed(text: str, met_by: int) -> None:
    """An error, a start that is too good, too few evaluations: such a cell is no healthy one."""
    board = BOARD[:1].assign(judged=1)
    lines = rows_that_meet(read_condition(f"collapsed {text}", list(board.columns)), board)
    assert len(lines) == met_by
    assert all("collapsed = 0, and 3 of 4 cells could not be judged" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("collapsed", "is no condition"),
        ("collapsed > few", "is no condition"),
        ("collapsed > nan", "is no condition"),
        ("colapsed > 0", "did you mean collapsed"),
        ("metod=vcpo: collapsed > 0", "did you mean method"),
        ("vcpo: collapsed > 0", "COLUMN=VALUE"),
        ("method=vcpo,lag=64: collapsed > 0", "no row of the scoreboard"),
    ],
)
def test_a_condition_that_checks_nothing_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match="--fail-if") as caught:
        met(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)

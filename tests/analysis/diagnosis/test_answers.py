"""What diagnose answers, and only where the log shows it."""

import numpy as np
import pytest

from vcpo_bench.analysis.diagnosis.answers import find_answers
from vcpo_bench.analysis.diagnosis.diagnosis import Outcome, Verdict
from vcpo_bench.analysis.logs.names import Name, columns
from vcpo_bench.analysis.logs.run import LoggedRun, Series

ROWS = 20
STEPS = np.arange(1.0, ROWS + 1)
LONGEST = 900.0 + np.arange(ROWS)


def answers(verdict: Verdict = "stall", onset: float = float("nan"), **values: np.ndarray) -> str:
    series = {
        name: Series(columns()[name], Name(name, name, "exact"), (name,), STEPS, one * np.ones(ROWS))
        for name, one in values.items()
    }
    run = LoggedRun("train.log", "verl", "verl", "rollout batches", "step", series)
    return " ".join(find_answers(run, Outcome(verdict, onset, 1.0, "reward", "", "")))


def test_a_clip_that_never_acts_is_explained() -> None:
    assert "Why is kl_anchor and share_clipped always 0?" in answers(kl_anchor=0, share_clipped=0)
    assert "4 versions old" in answers(share_clipped=0, lag_mean=4)
    assert answers(kl_anchor=0.001, share_clipped=0.01) == ""


def test_a_loss_of_zero_is_explained_without_a_gradient_norm() -> None:
    assert "as long as rewards within a group differ" in answers(loss=0, reward_std=0.3)
    assert answers(loss=0, reward_std=0) == ""


def test_a_correction_that_does_nothing_is_said_to() -> None:
    assert "Is the correction acting? No" in answers(weight_mean=1)
    assert answers(weight_mean=0.98) == ""


@pytest.mark.parametrize(
    ("cut", "longest", "untrue"),
    [(1 / 256, LONGEST, True), (1 / 256, 1024, False), (np.where(STEPS > 5, 1 / 256, 0), LONGEST, False)],
)
def test_the_truncation_of_verl_v1_is_not_believed(cut: np.ndarray, longest: np.ndarray, untrue: bool) -> None:
    assert ("verl#7817" in answers(truncated_share=cut, length_max=longest)) == untrue


def test_how_stale_a_sample_may_be() -> None:
    assert "did well with lag_max up to 8" in answers("healthy", lag_max=8)
    grown = np.where(STEPS > 10, 12, 2)
    assert "lag_max went from 2 to 12" in answers("collapsed", 15, lag_max=grown)
    assert answers("collapsed", 15, lag_max=8) == ""

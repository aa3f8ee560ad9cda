"""`vcpo-bench plan`."""

import pytest
from command_line import call


def test_the_drawing_ends_with_lag_and_period() -> None:
    shown = call("plan", "--regime", "minibatch", "--staleness", "3", "--steps", "12")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[-1] == "lag max 3, mean 1.5, period 4 updates"


def test_simulate_compares_with_synchronous_training() -> None:
    shown = call("plan", "--regime", "async(sampler=2,learner=1)", "--simulate")
    assert "1.50 times the updates of split synchronous training" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--regime", "fivo"), "did you mean fifo"),
        (("--regime", "async"), "clock"),
        (("--simulate",), "service times"),
    ],
)
def test_what_cannot_be_planned_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    result = call("plan", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output

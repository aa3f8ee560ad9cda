"""`vcpo-bench lab plan`."""

import json

import pytest
from command_line import call


def test_the_drawing_ends_with_lag_and_period() -> None:
    shown = call("lab", "plan", "--regime", "minibatch", "--staleness", "3", "--steps", "12")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[-1] == "lag max 3, mean 1.5, period 4 updates"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--regime", "fivo"), "did you mean fifo"),
        (("--regime", "async"), "clock"),
    ],
)
def test_what_cannot_be_planned_is_one_line(arguments: tuple[str, ...], said: str) -> None:
    result = call("lab", "plan", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_as_json_every_update_says_its_lags() -> None:
    shown = json.loads(call("lab", "plan", "--staleness", "3", "--steps", "6", "--json").stdout)
    assert [one["update"] for one in shown] == list(range(6))
    assert list(shown[-1]["trajectories_by_lag"]) == ["3"]

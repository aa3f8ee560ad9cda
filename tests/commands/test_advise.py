"""`advise`: from the packaged tables, at once."""

import json
import subprocess
import sys

import pytest
from command_line import call

from vcpo_bench.analysis.advice import advise
from vcpo_bench.analysis.advice.tables import facts


@pytest.mark.parametrize("lag", [0, 1, 3, 8, 64, 100, 300])
def test_says_what_is_known_for_any_lag(lag: int) -> None:
    found, said = advise(lag), call("advise", "--lag", str(lag))
    assert said.exit_code == 0
    assert said.stdout.startswith(f"Lag {lag}: ")
    for one in (*found.use, *found.avoid, *found.earned):
        assert f"    {one.method} " in said.stdout
    assert facts()["ess_at_four_times_the_rate"] in said.stdout
    assert ("no study of ours reaches it" in said.stdout) == (not found.earned)


def test_who_can_tune_is_told_in_which_direction() -> None:
    said = call("advise", "--lag", "8", "--can-tune").stdout
    assert f"earned most in {facts()['lowest_rate_earns_most']} places" in said
    assert "If you cannot tune" not in said


def test_json_has_the_same_facts() -> None:
    found, said = advise(8, 2000), json.loads(call("advise", "--lag", "8", "--length", "2000", "--json").stdout)
    assert [one["method"] for one in said["use"]] == [one.method for one in found.use]
    assert said["predicted_ess"] == found.predicted_ess
    assert len(said["published"]) == len(found.published)


@pytest.mark.parametrize("arguments", [("--lag", "-1"), ("--lag", "many"), (), ("--lag", "8", "--length", "0")])
def test_bad_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    assert call("advise", *arguments).exit_code == 2


def test_neither_torch_nor_pandas_is_loaded() -> None:
    program = (
        "import sys; from vcpo_bench.cli import app\n"
        "try: app(['advise', '--lag', '8'])\n"
        "except SystemExit: print(sorted({'torch', 'pandas', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

"""`advise`: from the packaged tables, at once."""

import json
import re
import subprocess
import sys

import pytest
from command_line import call

from vcpo_bench.analysis.advice import advise
from vcpo_bench.analysis.advice.tables import facts
from vcpo_bench.methods import parse_method


@pytest.mark.parametrize("lag", [0, 1, 3, 8, 64, 100, 300])
def test_says_what_is_known_for_any_lag(lag: int) -> None:
    found, said = advise(lag), call("advise", "--lag", str(lag))
    assert said.exit_code == 0
    assert said.stdout.startswith(f"Lag {lag}: ")
    papers = [row for rows in found.published for row in rows]
    for one in (*found.use, *found.aside, *found.avoid, *found.earned, *papers):
        assert f"    {one.method} " in said.stdout
    assert (facts()["steered_longer"] in said.stdout) == (lag > 1), "nothing need be changed on policy"
    assert ("no study of ours reaches it" in said.stdout) == (not found.earned)


def test_who_can_tune_is_told_in_which_direction() -> None:
    said = call("advise", "--lag", "8", "--can-tune").stdout
    assert f"earned most in {facts()['lowest_rate_earns_most']} places" in said
    assert "If you cannot tune" not in said


def test_the_target_of_the_kl_is_that_of_the_length() -> None:
    assert "kl-adaptive(target=0.12/T)" in call("advise", "--lag", "8").stdout
    (target,) = re.findall(r"kl-adaptive\(target=(\S+)\)", call("advise", "--lag", "8", "--length", "48").stdout)
    parse_method(f"vcpo(ess=off)+kl-adaptive(target={target})")
    assert float(target) == pytest.approx(0.12 / 48)
    assert "Do not steer the step" in call("advise", "--lag", "8", "--length", "2000").stdout


def test_the_runs_of_a_released_model_stand_under_how_sure() -> None:
    (_, sure) = call("advise", "--lag", "16").stdout.split("How sure")
    for method in ("reinforce", "vcpo", "tis"):
        assert facts()[f"released_{method}"] in sure


def test_json_has_the_same_facts() -> None:
    found, said = advise(8, 2000), json.loads(call("advise", "--lag", "8", "--length", "2000", "--json").stdout)
    assert [one["method"] for one in said["use"]] == [one.method for one in found.use]
    assert said["predicted_ess"] == found.predicted_ess
    assert said["kl_target"] is None
    assert all(one["but"] for one in said["aside"])
    assert len(said["published"]) == len(found.published)


@pytest.mark.parametrize("arguments", [("--lag", "-1"), ("--lag", "many"), (), ("--lag", "8", "--length", "0")])
def test_bad_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    assert call("advise", *arguments).exit_code == 2


@pytest.mark.parametrize("lag", [8, 64])
@pytest.mark.parametrize("trainer", ["trl", "verl", "prime-rl", "slime", "skyrl"])
def test_ends_with_what_to_set_in_a_trainer(trainer: str, lag: int) -> None:
    *_, last = call("advise", "--lag", str(lag), "--trainer", trainer).stdout.split("\n\n")
    methods = [one.method for one in advise(lag).use] or [one.method for one in advise(lag).earned]
    assert last.startswith(f"In {trainer}:\n")
    named = re.findall(r"^  (\S+):", last, flags=re.M)
    assert set(named) <= set(methods)
    assert set(named) >= {one.method for one in advise(lag).use}
    assert "vcpo_bench" in last, "the trainers' own losses do not see a lag"


def test_a_trainer_without_a_way_says_why() -> None:
    said = call("advise", "--lag", "8", "--trainer", "areal")
    assert said.exit_code == 0
    assert "not possible, because" in said.stdout


@pytest.mark.parametrize("lag", [0, 8, 5000])
def test_a_trainer_that_does_not_exist_is_refused_at_every_lag(lag: int) -> None:
    assert call("advise", "--lag", str(lag), "--trainer", "nope").exit_code == 2


def test_a_report_of_a_collapse_on_policy_is_named() -> None:
    assert "saw clip(anchor=proximal) collapse" in call("advise", "--lag", "1").stdout


@pytest.mark.parametrize("lag", [0, 1])
def test_who_shall_keep_what_they_have_has_nothing_to_set(lag: int) -> None:
    said = call("advise", "--lag", str(lag), "--trainer", "verl").stdout
    assert "keep what you have" in said
    assert said.endswith("In verl:\n  nothing to set\n")


def test_neither_torch_nor_pandas_is_loaded() -> None:
    program = (
        "import sys; from vcpo_bench.cli import app\n"
        "try: app(['advise', '--lag', '8'])\n"
        "except SystemExit: print(sorted({'torch', 'pandas', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"

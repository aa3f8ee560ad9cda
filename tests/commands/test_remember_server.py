"""The address typed with `--url` reaches the workers of the learner or sampler it belongs to."""

import os

import pytest
from command_line import call

PLAN = ("run", "--dry-run", "--model", "nowhere", "--task", "arithmetic", "--url", "http://me:secret@host.test:1")
VARIABLES = {"torch": "VCPO_BENCH_VLLM_URL", "tinker(rank=8)": "VCPO_BENCH_TINKER_URL"}


@pytest.mark.parametrize("learner", VARIABLES)
def test_an_address_goes_to_the_variable_of_its_server(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.setenv(variable, "")
    call(*PLAN, "--learner", learner)  # ends at the model, which is nowhere
    assert {name: os.environ[name] for name in VARIABLES.values()} == dict.fromkeys(VARIABLES.values(), "") | {
        VARIABLES[learner]: "http://me:secret@host.test:1"
    }


def test_an_address_of_the_environment_stays_with_its_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCPO_BENCH_VLLM_URL", "http://vllm.test:1")
    monkeypatch.setenv("VCPO_BENCH_TINKER_URL", "http://tinker.test:2")
    call(*PLAN[:-2], "--learner", "tinker")
    assert os.environ["VCPO_BENCH_TINKER_URL"] == "http://tinker.test:2"


def test_an_unknown_learner_is_named() -> None:
    result = call(*PLAN, "--learner", "tinkr")
    assert result.exit_code == 2
    assert "did you mean tinker" in result.stderr

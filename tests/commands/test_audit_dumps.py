"""`vcpo-bench lab audit-lag` on token dumps: the step or rank whose sampler was behind, and what says so."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refused


def write(path: Path, noise: float, seed: int, names: tuple[str, str]) -> None:
    """48 sequences of 6 tokens whose log-probabilities differ by normal noise; the sixth carries no loss."""
    random = np.random.default_rng(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for _ in range(48):
            now = random.normal(-1, 0.1, 6)
            then = now + np.append(random.normal(0, noise, 5), 3.0)
            file.write(json.dumps({names[0]: now.tolist(), names[1]: then.tolist(), "loss_mask": [1] * 5 + [0]}) + "\n")


def test_a_step_of_nemo_rl_whose_push_was_skipped(tmp_path: Path) -> None:
    for step in range(12):
        names = ("prev_logprobs", "generation_logprobs")
        write(tmp_path / f"train_data_step{step}.jsonl", 0.05 if step == 9 else 0.01, step, names)
    shown = call("lab", "audit-lag", str(tmp_path), "--honest", "5")
    assert shown.exit_code == 1
    false = [line for line in shown.output.splitlines() if "is FALSE" in line]
    assert len(false) == 1
    assert false[0].startswith("step 9 (train_data_step9.jsonl) is FALSE: ")
    assert shown.output.splitlines()[-1] == "7 tests: 1 FALSE (alpha 0.001)"


def test_a_rank_of_prime_rl_that_is_behind(tmp_path: Path) -> None:
    for step in range(8):
        for rank in range(2):
            noise = 0.05 if (step, rank) == (6, 1) else 0.01
            file = tmp_path / f"token_exports/step_{step}/rank_{rank}.jsonl"
            write(file, noise, 10 * step + rank, ("trainer_logprobs", "inference_logprobs"))
    shown = call("lab", "audit-lag", str(tmp_path), "--honest", "4")
    assert shown.exit_code == 1
    assert [line.split(" is")[0] for line in shown.output.splitlines() if "is FALSE" in line] == [
        "step 6 (token_exports/step_6/rank_1.jsonl)"
    ]


@pytest.mark.parametrize("honest", ["0", "3"])
def test_some_steps_must_be_honest_and_some_left(tmp_path: Path, honest: str) -> None:
    for step in range(3):
        write(tmp_path / f"train_data_step{step}.jsonl", 0.01, step, ("prev_logprobs", "generation_logprobs"))
    assert "holds 3 steps" in refused("lab", "audit-lag", str(tmp_path), "--honest", honest)

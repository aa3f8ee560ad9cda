"""`vcpo-bench lab warmup`."""

import re
from pathlib import Path

import pytest
from command_line import call, run_with


def test_the_start_policy_it_writes_is_the_one_a_run_takes(tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    made = call("lab", "warmup", "--task", "chain(n=2)", "--out", str(start))
    assert made.exit_code == 0, made.output
    assert re.match(rf"{start}: chain\(n=2\), sampled reward 0\.\d\d, greedy 0\.\d\d after \d+ supervised", made.stdout)
    planned = call(*run_with(task="chain(n=2)"), "--start", str(start), "--dry-run", "--out", str(tmp_path / "out"))
    assert planned.exit_code == 0, planned.output
    refused = call(*run_with(task="chain"), "--start", str(start), "--dry-run", "--out", str(tmp_path / "out"))
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(("task", "said"), [("chian", "chain"), ("chain(n=0)", "1 to 64"), ("gsm8k", "--model")])
def test_a_task_that_cannot_be_learned_is_one_line(task: str, said: str, tmp_path: Path) -> None:
    result = call("lab", "warmup", "--task", task, "--out", str(tmp_path / "start.safetensors"))
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

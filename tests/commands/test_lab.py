"""`vcpo-bench lab`: `plan`, `warmup` and `analyze`."""

import json
import re
from pathlib import Path

import pytest
from command_line import call, refused, run_with

from vcpo_bench.analysis.commands import ANALYSES


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
    assert said in refused("lab", "plan", *arguments)


def test_as_json_every_update_says_its_lags() -> None:
    shown = json.loads(call("lab", "plan", "--staleness", "3", "--steps", "6", "--json").stdout)
    assert [one["update"] for one in shown] == list(range(6))
    assert list(shown[-1]["trajectories_by_lag"]) == ["3"]


def test_the_start_policy_it_writes_is_the_one_a_run_takes(tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    made = call("lab", "warmup", "--task", "chain(n=2)", "--out", str(start))
    assert made.exit_code == 0, made.output
    assert re.match(rf"{start}: chain\(n=2\), sampled reward 0\.\d\d, greedy 0\.\d\d after \d+ supervised", made.stdout)
    planned = call(*run_with(task="chain(n=2)"), "--start", str(start), "--dry-run", "--out", str(tmp_path / "out"))
    assert planned.exit_code == 0, planned.output
    refused(*run_with(task="chain"), "--start", str(start), "--dry-run", "--out", str(tmp_path / "out"))


@pytest.mark.parametrize(("task", "said"), [("chian", "chain"), ("chain(n=0)", "1 to 64"), ("gsm8k", "--model")])
def test_a_task_that_cannot_be_learned_is_one_line(task: str, said: str, tmp_path: Path) -> None:
    assert said in refused("lab", "warmup", "--task", task, "--out", str(tmp_path / "start.safetensors"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ANALYSES.names())
def test_analyzes(finished: Path, tmp_path: Path, kind: str) -> None:
    result = call("lab", "analyze", kind, str(finished), "--out", str(tmp_path / "tables"))
    assert result.exit_code == 0, result.output
    assert list((tmp_path / "tables").glob("*.csv"))


def test_the_id_of_a_finding_leads_to_its_rows(finished: Path) -> None:
    first = call("lab", "analyze", "collapse", str(finished), "--ids").stdout.splitlines()[0]
    number, _, text = first.partition("  ")
    traced = call("results", "trace", number, str(finished))
    assert traced.exit_code == 0, traced.output
    assert traced.stdout.startswith(f"{number}: {text}\n")


def test_an_id_cannot_be_had_of_an_analysis_with_parameters(finished: Path) -> None:
    assert "leave out the parameters" in refused("lab", "analyze", "compare(replications=20)", str(finished), "--ids")


def test_the_help_says_that_an_analysis_takes_parameters() -> None:
    assert "compare(replications=500)" in " ".join(call("lab", "analyze", "--help").output.split())


def test_what_cannot_be_answered_is_counted_after_what_can(finished: Path) -> None:
    *known, counted = call("lab", "analyze", "collapse", str(finished)).stdout.splitlines()
    assert known[0].startswith("Outcomes of ")
    assert not any("compared" in line for line in known)
    assert counted.endswith("cannot be answered from so few runs; --ids prints every one")
    every = call("lab", "analyze", "collapse", str(finished), "--ids").stdout.splitlines()
    assert len(every) == len(known) + int(counted.split()[0])


def test_a_seed_beyond_63_bits_is_refused() -> None:
    assert "'--seed'" in refused("lab", "warmup", "--task", "walk", "--seed", 2**63)

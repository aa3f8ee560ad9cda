"""Every example runs and does what it says; the one in TRL runs in `trl.sh`."""

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from vcpo_bench.methods import load_plugin, parse_method

ROOT = Path(__file__).parents[2]
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES[name]))


def test_the_page_lists_every_example() -> None:
    assert sorted(EXAMPLES) == sorted(re.findall(r"^\| `examples/(\w+)\.py`", PAGE, flags=re.M))
    for path in EXAMPLES.values():
        assert "it: `" in (ast.get_docstring(ast.parse(path.read_text())) or ""), "says how to run it"


@pytest.mark.parametrize("method", ["vespo", "clip+ess"])
def test_the_tiny_loop_is_asynchronous_and_learns(method: str) -> None:
    loop = example("tiny_loop")
    history = loop["train"](method)
    assert [each["lag"] for each in history] == [min(now, loop["LAG"]) for now in range(len(history))]
    assert history[0]["ESS ratio"] == pytest.approx(1.0)
    assert min(each["ESS ratio"] for each in history) < 0.9, "the weights have moved on"
    assert history[0]["reward"] < 0.2
    assert history[-1]["reward"] > 0.7
    assert len(EXAMPLES["tiny_loop"].read_text().splitlines()) <= 100


def test_the_monitor_speaks_after_the_drift_and_not_without() -> None:
    watch = example("monitor_in_a_loop")["watch"]
    alarm = watch()
    assert alarm is not None
    assert 30 < alarm < 50
    assert watch(drift_from=1000) is None


def test_own_method_is_between_its_bounds() -> None:
    import torch

    from vcpo_bench.methods import Batch

    load_plugin(EXAMPLES["own_method"])
    logp = torch.tensor([[-4.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    rows = {
        "mask": torch.ones(2, 3, dtype=torch.bool),
        "reward": torch.tensor([1.0, 0.0]),
        "group": torch.zeros(2).long(),
    }
    batch = Batch.from_rows(logp=logp, behavior_logp=torch.zeros(2, 3), **rows)
    first, middle, last = batch.to_rows(parse_method("floored(low=0.1)")(batch).coefficients)[0].tolist()
    assert first / middle == pytest.approx(0.1)
    assert last / middle == pytest.approx(1.5)


def test_a_log_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    log = ROOT / "tests" / "analysis" / "logs" / "golden" / "verl_console.log"
    first, *_ = example("diagnose_a_log")["explain"](str(log))
    assert first.startswith("verl, ")


@pytest.mark.slow
def test_the_sweep_trains_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES["sweep"]), str(tmp_path / "out")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.rstrip().endswith("unit of the KL column: nats/token")
    facts = [path.stat().st_mtime_ns for path in sorted((tmp_path / "out" / "cells").glob("*/cell.json"))]
    assert len(facts) == 4
    tables = example("sweep")["sweep"](str(tmp_path / "out"))
    assert isinstance(tables.scoreboard, pd.DataFrame)
    assert facts == [path.stat().st_mtime_ns for path in sorted((tmp_path / "out" / "cells").glob("*/cell.json"))]

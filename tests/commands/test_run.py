"""`vcpo-bench run`, as its users meet it."""

import json
import shutil
from pathlib import Path

from command_line import RUN, call, call_here

from vcpo_bench.bench.policies.warm_start import read_warm_start
from vcpo_bench.bench.tasks import token_task


def test_a_run_writes_every_cell_with_its_controls(finished: Path) -> None:
    cells = {path.name: json.loads((path / "cell.json").read_text()) for path in (finished / "cells").iterdir()}
    assert sorted((c["config"]["method"], c["config"]["staleness"], c["control"]) for c in cells.values()) == [
        ("clip", 1, False),
        ("reinforce", 0, True),
        ("reinforce", 1, True),
    ]
    assert {c["status"] for c in cells.values()} == {"completed"}
    assert all(c["steps_done"] == 4 and c["provenance"]["libraries"]["torch"] for c in cells.values())
    assert (finished / "scoreboard.csv").read_text().count("\n") >= 4


def test_running_again_runs_nothing(finished: Path) -> None:
    times = {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.parquet")}
    result = call(*RUN, "--out", str(finished))
    assert result.exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (finished / "cells").rglob("*.parquet")} == times
    start = read_warm_start(token_task("walk-eos"))
    said = f"start policy of walk-eos: held-out reward {start.reward:.2f} sampled, {start.greedy:.2f} greedy\n"
    assert said in result.output
    assert said not in call(*RUN, "--out", str(finished), "--quiet").output


def test_a_damaged_cell_is_named_set_aside_and_run_again(finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "run"))
    cell = next((out / "cells").glob("*clip*"))
    steps = (cell / "evals.parquet").read_bytes()
    (cell / "cell.json").write_text("{")
    result = call_here(*RUN, "--out", str(out))
    assert result.exit_code == 0
    assert f"{cell}/cell.json cannot be read" in result.output.replace("\n", "")
    assert (out / "damaged" / f"{cell.name}-1" / "cell.json").read_text() == "{"
    assert json.loads((cell / "cell.json").read_text())["status"] == "completed"
    assert len((cell / "evals.parquet").read_bytes()) > len(steps) // 2


def test_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = call(*RUN, "--out", str(tmp_path / "none"), "--dry-run")
    assert result.exit_code == 0
    (total,) = result.stdout.splitlines()
    assert total.startswith("3 cells, 3 to run on 1 worker: about ")
    assert " s (" in total or " min (" in total or " h " in total
    first, *cells = call(*RUN, "--out", str(tmp_path / "none"), "--dry-run", "--cells").stdout.splitlines()
    assert first.startswith("3 cells")
    assert len(cells) == 3
    assert not (tmp_path / "none").exists()


def test_a_lag_as_long_as_the_run_is_allowed_with_a_warning() -> None:
    result = call("run", "--staleness", "50", "--steps", "5", "--prompts", "2", "--seeds", "1", "--dry-run")
    assert result.exit_code == 0
    assert "every update consumes data of the start policy" in result.stderr

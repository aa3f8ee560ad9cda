"""The runs that ship for comparison are what they are called, and a run is set beside them."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refused

import vcpo_bench as vb
from vcpo_bench.analysis.diagnosis import diagnose, read_run
from vcpo_bench.analysis.diagnosis.references import FOLDER

SHIPPED = sorted(FOLDER.glob("*.csv"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_run_is_what_its_name_says(file: Path) -> None:
    trainer, _, verdict = file.stem.partition("-")
    found = diagnose(read_run(file))
    assert (found.run.framework, found.verdict) == (trainer, verdict)


def test_every_trainer_has_both_and_all_are_small() -> None:
    trainers = {file.stem.partition("-")[0] for file in SHIPPED}
    assert {file.stem for file in SHIPPED} == {f"{one}-{name}" for one in trainers for name in ("healthy", "collapsed")}
    assert sum(file.stat().st_size for file in SHIPPED) < 110_000


@pytest.mark.parametrize("trainer", ["trl", "verl"])
def test_stale_samples_are_named_as_what_made_a_run_collapse(trainer: str) -> None:
    found = diagnose(read_run(FOLDER / f"{trainer}-collapsed.csv"))
    standing = {cause.name: cause.standing for cause in found.causes}
    assert standing["lag and weights"] == "probable"
    assert standing.get("engine gap") != "probable"
    assert not any("fp16" in one.set for one in found.try_next)
    assert any("staleness" in one.set or "off_policy" in one.set for one in found.try_next)


def slime_log(folder: Path) -> Path:
    rows = [
        f"rollout {t}: {{'rollout/raw_reward': {0.2 + t / 100}, 'rollout/response_len/mean': {100 + t}}}"
        for t in range(60)
    ]
    file = folder / "slime.log"
    file.write_text("\n".join(rows))
    return file


def test_a_run_of_another_trainer_is_set_beside_these_and_that_is_said(tmp_path: Path) -> None:
    result = call("diagnose", str(slime_log(tmp_path)), "--baseline", "reference")
    assert result.exit_code == 0, result.output
    assert "for none of slime ships" in result.output
    row = next(line for line in result.output.splitlines() if line.strip().startswith("training reward"))
    assert "0.21 -> 0.78" in row


def test_the_page_and_the_data_hold_the_three_curves(tmp_path: Path) -> None:
    file, page = slime_log(tmp_path), tmp_path / "page.html"
    result = call("diagnose", str(file), "--baseline", "reference", "--html", str(page), "--json")
    beside = json.loads(result.output)["references"]
    reward = beside["signals"][0]
    assert reward["label"] == "training reward"
    collapsed = read_run(FOLDER / "verl-collapsed.csv").series["reward"].values
    assert reward["collapsed"][1] == pytest.approx(float(np.median(collapsed[-10:])))
    assert "one that collapses" in page.read_text()
    assert vb.diagnose(file, baseline="reference").references is not None
    assert vb.diagnose(file).references is None


def test_a_folder_of_runs_has_no_place_for_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        slime_log(tmp_path / name)
    refused("diagnose", str(tmp_path), "--baseline", "reference")

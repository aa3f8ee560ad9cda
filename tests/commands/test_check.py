"""`vcpo-bench results check`: whatever bit is flipped is named, and only what is damaged is made again."""

import json
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import RUN, call, call_here, refused

from vcpo_bench.bench.cells.check import check_folder
from vcpo_bench.bench.cells.results_folder import ended_keys

FLIPS = 4000 if os.environ.get("HARDENING") == "long" else 60


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("kept") / "run"
    result = call_here(*RUN, "--no-controls", "--keep-checkpoints", "every=2", "--out", str(out))
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "run"))


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def test_an_undamaged_folder_is_said_to_be_so(kept: Path) -> None:
    result = call("results", "check", str(kept))
    assert (result.exit_code, result.output) == (0, "1 cell, 2 checkpoints: nothing damaged\n")


def test_a_single_flipped_bit_anywhere_is_noticed(run: Path) -> None:
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name != "scoreboard.csv"]
    assert {"grid.json", "cell.json", "state.json", "state.safetensors", "steps.parquet"} <= {f.name for f in files}
    chance = random.Random(0)
    for number in range(FLIPS):
        victim = files[number % len(files)]
        bit = chance.randrange(8 * victim.stat().st_size)
        flip(victim, bit)
        damaged = [one for one in check_folder(run) if one.damage]
        assert len(damaged) == 1, f"bit {bit} of {victim}"
        assert victim.name in damaged[0].damage
        flip(victim, bit)
    assert not [one for one in check_folder(run) if one.damage]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["steps.parquet", "cell.json", "checkpoints/00000002/state.safetensors"])
def test_what_is_damaged_is_set_aside_and_run_again(run: Path, kept: Path, name: str) -> None:
    (key,) = ended_keys(run)
    flip(run / "cells" / key / name, 900)
    found = call("results", "check", str(run))
    assert found.exit_code == 1
    assert Path(name).name in found.output
    assert "1 damaged" in found.output
    assert call("results", "check", str(run), "--set-aside").exit_code == 1
    assert (run / "damaged" / f"{key}-1").is_dir()
    assert ended_keys(run) == set()
    again = call_here(*RUN, "--no-controls", "--keep-checkpoints", "every=2", "--out", str(run))
    assert again.exit_code == 0, again.output
    assert call("results", "check", str(run)).exit_code == 0
    state = Path("cells") / key / "checkpoints" / "00000002" / "state.safetensors"
    assert (run / state).read_bytes() == (kept / state).read_bytes()


def test_a_damaged_checkpoint_of_a_running_cell_is_set_aside(run: Path) -> None:
    (key,) = ended_keys(run)
    partial = run / "cells" / f"{key}.partial"
    shutil.copytree(run / "cells" / key / "checkpoints" / "00000002", partial / "checkpoint-00000002")
    flip(partial / "checkpoint-00000002" / "steps.parquet", 500)
    assert "resumes without it" in call("results", "check", str(run), "--set-aside").output
    assert [path.name for path in partial.glob("*00000002")] == ["damaged-checkpoint-00000002"]
    assert ended_keys(run) == {key}


def test_a_folder_of_an_earlier_version_is_read_and_said_to_have_no_checksums(
    tmp_path: Path, make_results: Callable[..., Path]
) -> None:
    folder = make_results(tmp_path, methods=("vcpo",), lags=(1,), seeds=(0,), steps=20, controls=False)
    (cell,) = (folder / "cells").iterdir()
    result = call("results", "check", str(folder))
    assert result.exit_code == 0, result.output
    assert "1 cell: nothing damaged, 2 with no checksums" in result.output  # the cell and grid.json
    (cell / "steps.parquet").write_bytes((cell / "steps.parquet").read_bytes()[:-20])
    assert call("results", "check", str(folder)).exit_code == 1


def test_a_table_beside_the_cells_is_verified_too(run: Path) -> None:
    (key,) = ended_keys(run)
    (run / "probes").mkdir()
    (run / "probes" / f"{key}.parquet").write_bytes(b"PAR1")
    result = call("results", "check", str(run), "--set-aside")
    assert f"probes/{key}.parquet cannot be read" in result.output
    assert (run / "damaged" / f"{key}-1.parquet").exists()


def test_what_is_no_results_folder_is_one_line(tmp_path: Path) -> None:
    assert "is not a results folder" in refused("results", "check", str(tmp_path))


def test_readers_name_a_flipped_bit(run: Path) -> None:
    (key,) = ended_keys(run)
    evals = run / "cells" / key / "evals.parquet"
    flip(evals, 8 * (evals.stat().st_size // 2))
    shown = call("show", str(run))
    assert "evals.parquet does not match its checksum" in shown.stderr.replace("\n", " ")
    assert json.loads((run / "cells" / key / "cell.json").read_text())["status"] == "completed"


def test_a_checkpoint_that_a_run_replaces_meanwhile_is_no_damage(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cell,) = (run / "cells").iterdir()
    (checkpoint, *_) = sorted((cell / "checkpoints").iterdir())
    (checkpoint / "state.json").unlink()
    assert [one.path for one in check_folder(run) if one.damage] == [checkpoint]
    monkeypatch.setattr(time, "sleep", lambda seconds: shutil.rmtree(checkpoint, ignore_errors=True))
    assert not [one for one in check_folder(run) if one.damage]

"""Damaged and foreign states: never taken silently, and never called equal to the record without a comparison."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks, write_origins
from vcpo_bench.bench.replay.probe import default_path
from vcpo_bench.bench.replay.recorded_cell import RecordedCell, read_cell
from vcpo_bench.bench.replay.replay import Replay, origin_folder
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.errors import DamagedResultError, VcpoBenchError
from vcpo_bench.files.checksums import write_sealed

pytestmark = pytest.mark.usefixtures("few_questions")

LAG = 1
SIZES = {"steps": 5, "prompts": 2, "responses": 4}
Recorded = Callable[..., RecordedCell]


def copied(cell: RecordedCell, to: Path) -> RecordedCell:
    folder = to / "run" / "cells" / cell.key
    shutil.copytree(cell.folder, folder)
    return read_cell(folder)


def damage_weights(checkpoint: Path, sealed: bool) -> None:
    """Change one weight, and take away the checksums unless they shall notice."""
    path, facts = checkpoint / "state.safetensors", json.loads((checkpoint / "state.json").read_text())
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    tensors["policy/head.weight"][0, 0] += 0.5
    save_file(tensors, path)
    if not sealed:
        bare = {name: value for name, value in facts.items() if name not in ("files", "checksum")}
        (checkpoint / "state.json").write_text(json.dumps(bare))


def forked(cell: RecordedCell, out: Path, at: int) -> list[str]:
    said: list[str] = []
    spec = ForkSpec([cell], at, ["vespo"], out)
    write_origins(spec, plan_forks(spec), False, said.append)
    return said


@pytest.mark.parametrize(("sealed", "why"), [(True, "does not match its checksum"), (False, "has no checksums")])
def test_a_fork_at_a_damaged_checkpoint_passes_it_over_and_says_so(
    tmp_path: Path, recorded: Recorded, sealed: bool, why: str
) -> None:
    cell = copied(recorded("vcpo", keep_every=2), tmp_path)
    assert forked(cell, tmp_path / "good", 4) == [
        f"{cell.key}: 1 update replayed from the checkpoint at 4, bit-identical to the record"
    ]
    damage_weights(cell.folder / "checkpoints" / "00000004", sealed)
    (line,) = forked(cell, tmp_path / "fork", 4)
    assert "3 updates replayed from the checkpoint at 2" in line
    assert f"00000004 {why}" in line
    assert line.endswith("bit-identical to the record")


def test_without_an_update_there_is_nothing_to_compare(recorded: Recorded) -> None:
    cell = recorded("vcpo", keep_every=2)
    replay = Replay(cell, 4)
    assert (replay.began, replay.trainer.step) == (4, 4)
    assert replay.summary().endswith("nothing to compare with the record")


def test_a_damaged_record_is_named(tmp_path: Path, recorded: Recorded) -> None:
    cell = copied(recorded("vcpo", keep_every=2), tmp_path)
    steps = bytearray((cell.folder / "steps.parquet").read_bytes())
    steps[len(steps) // 2] ^= 1
    (cell.folder / "steps.parquet").write_bytes(steps)
    replay = Replay(cell, 4)
    replay.to(5)
    with pytest.raises(DamagedResultError, match=r"steps\.parquet does not match its checksum"):
        replay.summary()


def test_a_damaged_fork_state_is_made_again(tmp_path: Path, recorded: Recorded) -> None:
    cell = recorded("vcpo", keep_every=2)
    out = tmp_path / "fork"
    assert len(forked(cell, out, 3)) == 1
    assert forked(cell, out, 3) == []
    state = origin_folder(out, cell.key, 3) / "state.safetensors"
    good = state.read_bytes()
    state.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    said = forked(cell, out, 3)
    assert "does not match its checksum" in said[0]
    assert "replayed" in said[1]
    assert state.read_bytes() == good


@pytest.mark.parametrize("change", [{"method": "clip"}, {"seed": 2}, {"lr": 1e-3}, {"parent": "x", "fork_step": 3}])
def test_a_checkpoint_of_another_cell_is_refused(tmp_path: Path, recorded: Recorded, change: dict) -> None:
    cell = recorded("vcpo", keep_every=2)
    other = build_trainer(replace(cell.config, **change))
    with pytest.raises(DamagedResultError, match=f"is a checkpoint of {cell.key}, not of {other.key}"):
        other.load(cell.folder / "checkpoints" / "00000004")
    assert other.step == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", "../../../evil"),
        ("key", "other"),
        ("key", ""),
        ("key", ".."),
        ("key", "/evil"),
        ("key", 3),
        ("parent", "../../../evil"),
        ("parent", "/evil"),
        ("parent", ".."),
        ("series", "../evil"),
        ("series", ".."),
        ("series", "a\0b"),
    ],
)
def test_no_field_that_becomes_a_path_leads_out_of_its_folder(
    tmp_path: Path, recorded: Recorded, field: str, value: object
) -> None:
    cell = copied(recorded("vcpo", keep_every=2), tmp_path)
    facts = json.loads((cell.folder / "cell.json").read_text())
    (facts if field == "key" else facts["config"])[field] = value
    write_sealed(cell.folder / "cell.json", facts)
    with pytest.raises(VcpoBenchError, match=r"cell\.json"):
        read_cell(cell.folder)


def test_paths_made_of_a_legal_cell_stay_in_the_results_folder(tmp_path: Path, recorded: Recorded) -> None:
    cell = copied(recorded("vcpo", keep_every=2), tmp_path)
    for path in (default_path(cell), origin_folder(cell.results, cell.key, 3)):
        assert path.resolve().is_relative_to(cell.results)
        assert cell.key in path.name


def test_folders_that_are_no_numbers_are_no_checkpoints(tmp_path: Path, recorded: Recorded) -> None:
    cell = copied(recorded("vcpo", keep_every=2), tmp_path)
    for name in ("5x", "draft", "0000000000000000000009", "٣"):
        (cell.folder / "checkpoints" / name).mkdir()
    assert Replay(cell, 5).began == 4


def test_a_linked_folder_is_known_by_its_own_name(tmp_path: Path, recorded: Recorded) -> None:
    cell = recorded("vcpo", keep_every=2)
    (tmp_path / "best").symlink_to(cell.folder)
    assert replace(read_cell(tmp_path / "best"), folder=cell.folder) == cell

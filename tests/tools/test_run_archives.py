"""Archives keep what analyses read, are the same file for the same runs, and unpack into a results folder."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from run_archives import pack, unpack
from run_archives.archive import FACTS
from run_archives.pack import pack_folder
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.collapse.rule import events
from vcpo_bench.analysis.monitoring.signal import all_signals
from vcpo_bench.analysis.results import Results, load
from vcpo_bench.errors import UsageError


@pytest.fixture(scope="module")
def recorded(make_results: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods at two lags, with a run that failed, one that ended as nan and one in an error."""
    shapes = {"vcpo": "healthy", "tis": "nan", "clip": "error", "reinforce": "collapsed"}
    folder = tmp_path_factory.mktemp("archives") / "results"
    return make_results(folder, ("vcpo", "tis", "clip"), shapes=shapes, record="diagnostics")


@pytest.fixture(scope="module")
def again(recorded: Path) -> Path:
    """The same runs, packed and unpacked."""
    packed, out = recorded.parent / "packed", recorded.parent / "again"
    names = [path.name for path in pack_folder(recorded, packed)]
    assert "chain_vcpo_fifo_16.zip" in names
    assert not any("clip" in name for name in names), "its runs ended in an error"
    unpack_folder(packed, out)
    return out


def without_errors(folder: Path) -> Results:
    found = load(folder)
    return found.select(found.cells.query("status != 'error'")["key"])


def test_an_unpacked_folder_says_what_the_recorded_one_does(recorded: Path, again: Path) -> None:
    first, second = without_errors(recorded), load(again)
    assert not second.problems
    drop = ["path", "control", "error"]
    pd.testing.assert_frame_equal(
        first.cells.drop(columns=drop), second.cells.drop(columns=drop), check_like=True, check_dtype=False
    )
    pd.testing.assert_frame_equal(first.evals, second.evals)
    pd.testing.assert_frame_equal(first.lags, second.lags)
    pd.testing.assert_frame_equal(events(first).drop(columns=drop), events(second).drop(columns=drop), check_like=True)
    timed = [name for name in first.steps if name.startswith("seconds_")]
    assert timed
    ours = second.steps.drop(columns=timed)
    pd.testing.assert_frame_equal(first.steps.drop(columns=timed), ours, rtol=1e-7, check_dtype=False, check_like=True)


def test_signals_are_the_same(recorded: Path, again: Path) -> None:
    first, second = (dict(found.steps_by_cell()) for found in (without_errors(recorded), load(again)))
    assert first.keys() == second.keys()
    for name in ("ess", "kl", "reward_low", "log_weight_var"):
        signal = all_signals()[name]
        for key, steps in first.items():
            assert signal.of(second[key]) == pytest.approx(signal.of(steps), rel=1e-6, abs=1e-7, nan_ok=True)


def test_the_same_runs_make_the_same_file(recorded: Path, again: Path, tmp_path: Path) -> None:
    for path in pack_folder(recorded, tmp_path):
        assert path.read_bytes() == (recorded.parent / "packed" / path.name).read_bytes()


def test_unpacked_runs_and_new_ones_share_an_archive(recorded: Path, again: Path, tmp_path: Path) -> None:
    whole = sorted(path for path in (again / "cells").iterdir() if path.name.startswith("chain-vcpo-fifo16"))
    pack.pack(whole, tmp_path / "whole.zip")
    pack.pack([whole[0], *(recorded / "cells" / path.name for path in whole[1:])], tmp_path / "mixed.zip")
    assert len(whole) > 1
    for name in ("whole", "mixed"):
        unpack.unpack(tmp_path / f"{name}.zip", tmp_path / name)
    for path in whole:
        one, other = (
            pd.read_parquet(tmp_path / name / "cells" / path.name / "steps.parquet") for name in ("whole", "mixed")
        )
        pd.testing.assert_frame_equal(one, other)


def test_controls_stay_controls_and_subfolders_stay_apart(recorded: Path, tmp_path: Path) -> None:
    key = "some-control"
    source = tmp_path / "results"
    cell = next(path for path in (recorded / "cells").iterdir() if "vcpo" in path.name)
    target = source / "cells" / key
    target.mkdir(parents=True)
    for file in cell.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    facts = json.loads((cell / "cell.json").read_text())
    (target / "cell.json").write_text(json.dumps(facts | {"key": key, "control": True}))
    pack_folder(source, tmp_path / "packed" / "one")
    pack_folder(recorded, tmp_path / "packed" / "two")
    unpack_folder(tmp_path / "packed", tmp_path / "again")
    assert load(tmp_path / "again" / "one").cells[["key", "control"]].to_numpy().tolist() == [[key, True]]
    assert len(load(tmp_path / "again" / "two").cells) > 1


def test_a_folder_without_archives_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no archive"):
        unpack_folder(tmp_path, tmp_path / "again")


def test_cells_that_are_there_are_not_overwritten(recorded: Path, again: Path) -> None:
    before = {path: path.read_bytes() for path in again.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="is there already, and stays; unpack into another folder"):
        unpack_folder(recorded.parent / "packed", again)
    assert {path: path.read_bytes() for path in again.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("key", ["../../outside", "/outside", "a/b", "..", "a\\b", ""])
def test_a_key_that_leads_elsewhere_is_refused(key: str, again: Path, tmp_path: Path) -> None:
    source = next((again.parent / "packed").glob("*.zip"))
    with zipfile.ZipFile(source) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(parts[FACTS])
    facts[0]["key"] = key
    parts[FACTS] = json.dumps(facts).encode()
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(UsageError, match="which is no plain name of a folder"):
        unpack_folder(tmp_path, tmp_path / "deep" / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["one.zip"]


@pytest.mark.parametrize("kind", ["cut", "foreign", "no list", "no tables"])
def test_a_broken_or_foreign_archive_is_one_line(
    kind: str, again: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.zip"
    whole = next((again.parent / "packed").glob("*.zip")).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    if kind != "cut":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt" if kind == "foreign" else FACTS, "{}" if kind == "no list" else "[]")
    monkeypatch.setattr("sys.argv", ["unpack.py", str(tmp_path), str(tmp_path / "again")])
    with pytest.raises(SystemExit) as ended:
        unpack.main()
    assert ended.value.code == 2
    assert f"error: {path} is no archive of runs, or it is broken: " in capsys.readouterr().err.splitlines()[-1]


def test_a_folder_without_results_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["pack.py", str(tmp_path), str(tmp_path / "packed")])
    with pytest.raises(SystemExit) as ended:
        pack.main()
    assert ended.value.code == 2
    assert "is not a results folder" in capsys.readouterr().err.splitlines()[-1]

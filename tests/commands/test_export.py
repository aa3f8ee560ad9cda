"""`vcpo-bench results export`."""

from collections.abc import Callable
from pathlib import Path

from command_line import call


def test_every_path_printed_is_there(finished: Path, tmp_path: Path) -> None:
    result = call("results", "export", str(finished), "--out", str(tmp_path / "csv"))
    assert result.exit_code == 0
    paths = [Path(line) for line in result.stdout.split()]
    assert tmp_path / "csv" / "steps.csv" in paths
    assert all(path.is_file() for path in paths)


def test_an_unknown_format_is_one_line(finished: Path, tmp_path: Path) -> None:
    result = call("results", "export", str(finished), "--out", str(tmp_path / "out"), "--as", "excel")
    assert result.exit_code == 2
    assert "parquet" in result.stderr
    assert not (tmp_path / "out").exists()


def test_several_folders_are_pooled(finished: Path, tmp_path: Path, make_results: Callable[..., Path]) -> None:
    other = make_results(tmp_path / "other", methods=("vcpo",), lags=(1,), seeds=(0,), steps=20, controls=False)
    result = call("results", "export", str(finished), str(other), "--out", str(tmp_path / "csv"))
    assert result.exit_code == 0, result.output
    text = (tmp_path / "csv" / "cells.csv").read_text()
    assert "vcpo" in text
    assert "clip" in text

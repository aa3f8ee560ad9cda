"""`vcpo-bench results`: `export`, `trace` and `diff`."""

from collections.abc import Callable
from pathlib import Path

from command_line import call, refused

from vcpo_bench.reports.report import build
from vcpo_bench.reports.study import open_study


def test_every_path_printed_is_there(finished: Path, tmp_path: Path) -> None:
    result = call("results", "export", str(finished), "--out", str(tmp_path / "csv"))
    assert result.exit_code == 0
    paths = [Path(line) for line in result.stdout.split()]
    assert tmp_path / "csv" / "steps.csv" in paths
    assert all(path.is_file() for path in paths)


def test_an_unknown_format_is_one_line(finished: Path, tmp_path: Path) -> None:
    assert "parquet" in refused("results", "export", str(finished), "--out", str(tmp_path / "out"), "--as", "excel")
    assert not (tmp_path / "out").exists()


def test_several_folders_are_pooled(finished: Path, tmp_path: Path, make_results: Callable[..., Path]) -> None:
    other = make_results(tmp_path / "other", methods=("vcpo",), lags=(1,), seeds=(0,), steps=20, controls=False)
    result = call("results", "export", str(finished), str(other), "--out", str(tmp_path / "csv"))
    assert result.exit_code == 0, result.output
    text = (tmp_path / "csv" / "cells.csv").read_text()
    assert "vcpo" in text
    assert "clip" in text


def test_an_id_of_the_report_leads_to_rows(finished: Path) -> None:
    known = next(one for one in build(open_study(finished)).ledger.numbers if one.startswith("final_reward-"))
    traced = call("results", "trace", known, str(finished))
    assert traced.exit_code == 0, traced.output
    assert traced.stdout.startswith(known)
    assert "walk-eos" in traced.stdout


def test_an_unknown_id_is_one_line(finished: Path) -> None:
    assert "nothing" in refused("results", "trace", "nothing", str(finished))


def test_a_folder_against_itself(finished: Path, tmp_path: Path) -> None:
    same = call("results", "diff", str(finished), str(finished))
    assert same.exit_code == 0
    assert "Conclusions" in same.output
    page = tmp_path / "diff.html"
    assert call("results", "diff", str(finished), str(finished), "--html", str(page)).stdout.split() == [str(page)]
    assert page.read_text().startswith("<!")

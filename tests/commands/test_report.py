"""`vcpo-bench report`."""

import shutil
from pathlib import Path

from command_line import call


def test_the_page_is_written_where_it_is_asked_for(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", str(finished), "--html", str(page))
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(page)]
    assert page.read_text().startswith("<!")


def test_an_unknown_venue_is_one_line_and_nothing_is_written(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", str(finished), "--html", str(page), "--figures", "cvpr")
    assert result.exit_code == 2
    assert "icml" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not page.exists()


def test_one_figure_is_all_that_is_written(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(finished, folder, ignore=shutil.ignore_patterns("*.html"))
    before = {path for path in folder.rglob("*") if path.is_file()}
    wrong = call("report", str(folder), "--figures", "icml", "--only", "nosuch")
    assert wrong.exit_code == 2
    assert wrong.stderr.count("\n") == 1
    assert {path for path in folder.rglob("*") if path.is_file()} - before == set()
    result = call("report", str(folder), "--figures", "icml", "--only", "vespo-fig2-kernels,table-scoreboard")
    assert result.exit_code == 0, result.output
    new = {
        str(path.relative_to(folder / "icml")) for path in folder.rglob("*") if path.is_file() and path not in before
    }
    kernels = {f"vespo-fig2-kernels.{form}" for form in ("pdf", "svg", "pgf", "txt")}
    assert new == kernels | {"table-scoreboard.tex"}
    assert sorted(map(Path, result.stdout.split())) == sorted(folder / "icml" / name for name in new)

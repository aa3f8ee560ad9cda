"""`vcpo-bench report`."""

import shutil
from pathlib import Path

import pytest
from command_line import call, refused


def test_the_page_is_written_where_it_is_asked_for(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = call("report", str(finished), "--html", str(page))
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [str(page)]
    assert page.read_text().startswith("<!")


def test_an_unknown_venue_is_one_line_and_nothing_is_written(finished: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert "icml" in refused("report", str(finished), "--html", str(page), "--figures", "cvpr")
    assert not page.exists()


def test_one_figure_is_all_that_is_written(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(finished, folder, ignore=shutil.ignore_patterns("*.html"))
    before = {path for path in folder.rglob("*") if path.is_file()}
    refused("report", str(folder), "--figure", "nosuch")
    assert {path for path in folder.rglob("*") if path.is_file()} - before == set()
    result = call("report", str(folder), "--figure", "vespo-fig2-kernels", "--as", "png,pdf", "--venue", "icml")
    assert result.exit_code == 0, result.output
    new = {
        str(path.relative_to(folder / "icml")) for path in folder.rglob("*") if path.is_file() and path not in before
    }
    assert new == {f"vespo-fig2-kernels.{form}" for form in ("pdf", "png", "txt")}
    assert sorted(map(Path, result.stdout.split())) == sorted(folder / "icml" / name for name in new)


def test_one_figure_needs_no_analysis_of_the_rest(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(study: object) -> None:
        raise AssertionError("the whole report was built")

    monkeypatch.setattr("vcpo_bench.reports.report.build", build)
    page = tmp_path / "page.html"
    assert call("report", str(finished), "--html", str(page), "--figure", "reward-steps").exit_code == 0
    assert not page.exists()
    assert (tmp_path / "iclr").is_dir()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--figure", "survival", "--figures", "icml"), "leave out --figures"),
        (("--figure", "survival", "--pdf", "x.pdf"), "leave out --figures and --pdf"),
        (("--as", "png"), "add --figure NAME"),
        (("--venue", "icml"), "add --figure NAME"),
        (("--venue", "icml", "--figures", "acl"), "write --figures VENUE"),
        (("--figure", "survival", "--as", "gif"), "unknown form 'gif'"),
        (("--figure", "survival", "--venue", "cvpr"), "choose one of icml"),
    ],
)
def test_flags_of_print_that_make_no_sense_are_one_line(finished: Path, flags: tuple[str, ...], said: str) -> None:
    assert said in refused("report", str(finished), *flags)

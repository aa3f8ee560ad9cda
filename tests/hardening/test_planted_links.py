"""Links in a stranger's results folder: nothing is written, moved or removed where they lead."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import call, refused

from vcpo_bench.bench.cells.cell_store import CellStore
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.outside.lm_eval.evaluate import write_scores
from vcpo_bench.bench.running.schedulers.loop.launch_file import LaunchFile
from vcpo_bench.errors import UsageError
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.reports.writers import html

LINK = "is a link, which is not followed"
DEFAULT_FILES = ("scoreboard.csv", "report.html")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The user's own files, which must be as they were when a test ends."""
    folder = tmp_path / "home"
    for inner in ("draft-1", "final-1", "replaced-1", "checkpoint-00000001", "damaged", "local"):
        (folder / inner).mkdir(parents=True)
        (folder / inner / "thesis").write_text("mine")
    for name in (".bashrc", "state.json", "cell.json"):
        (folder / name).write_text("{}")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


@pytest.fixture
def gift(tmp_path: Path, make_results: Callable[..., Path]) -> Path:
    """A sealed results folder of a stranger."""
    folder = make_results(tmp_path / "gift", methods=("clip",), lags=(1,), seeds=(0, 1), steps=20)
    for file in folder.glob("cells/*/cell.json"):
        write_sealed(file, json.loads(file.read_text()))
    return folder


def contents(folder: Path) -> dict[str, str | None]:
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("target", [".bashrc", "new", "draft-1"])
def test_what_verbs_write_by_default_replaces_a_link(
    gift: Path, home: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    for name in DEFAULT_FILES if target != "draft-1" else DEFAULT_FILES[:1]:  # no page is written over a folder
        (gift / name).symlink_to(home / target)
    monkeypatch.setattr(html, "render", lambda *_, **__: "page")
    assert call("show", str(gift)).exit_code == 0
    assert call("report", str(gift)).exit_code == 0
    assert [name for name in DEFAULT_FILES if (gift / name).is_symlink()] == []
    assert (gift / "report.html").read_text() == "page"
    assert list(gift.glob(".*.draft")) == []


def test_printed_figures_do_not_go_where_a_link_leads(gift: Path, home: Path) -> None:
    (gift / "icml").symlink_to(home)
    assert "icml is a link, which is not followed" in refused(
        "report", str(gift), "--figure", "vespo-fig2-kernels", "--venue", "icml"
    )


@pytest.mark.parametrize("name", ["cells", ".writer"])
def test_a_results_folder_holds_its_folders_itself(gift: Path, home: Path, name: str) -> None:
    if (gift / name).exists():
        (gift / name).rename(gift / "elsewhere")
    (gift / name).symlink_to(home)
    with pytest.raises(UsageError) as refused:
        ResultsFolder(gift)
    assert str(refused.value) == f"{gift / name} {LINK}; put what it leads to in its place"


def test_a_results_folder_may_be_a_link_itself(gift: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(gift)
    assert call("show", str(tmp_path / "link")).exit_code == 0
    assert (gift / "scoreboard.csv").is_file()
    ResultsFolder(tmp_path / "link")


@pytest.mark.parametrize("name", ["key.partial", "key"])
def test_a_cell_is_not_run_where_a_link_leads(home: Path, tmp_path: Path, name: str) -> None:
    cells = tmp_path / "cells"
    cells.mkdir()
    (cells / name).symlink_to(home)
    with pytest.raises(UsageError, match=LINK), CellStore(cells, "key").open():
        pytest.fail("it was opened")
    CellStore(cells, "key").discard()


@pytest.mark.parametrize("name", ["checkpoint-00000007", "checkpoints"])
def test_no_checkpoint_is_looked_for_or_moved_where_a_link_leads(home: Path, tmp_path: Path, name: str) -> None:
    store = CellStore(tmp_path, "key")
    store.partial.mkdir()
    (store.partial / name).symlink_to(home if name == "checkpoints" else home / "draft-1")
    with store.open():
        assert store.checkpoints() == []
        if name == "checkpoints":
            with pytest.raises(UsageError, match=LINK):
                store.keep(3, lambda folder: (folder / "state").touch())
        with store.finish(failed=True) as final:
            (final / "facts").touch()
    assert os.listdir(store.final) == ["facts"]


def test_nothing_damaged_is_moved_where_a_link_leads(gift: Path, home: Path) -> None:
    (gift / "damaged").symlink_to(home / "damaged")
    cell = next((gift / "cells").iterdir())
    with pytest.raises(UsageError, match=LINK):
        ResultsFolder(gift).set_aside(cell.name)
    assert cell.is_dir()


def test_scores_are_not_written_where_a_link_leads(gift: Path, home: Path) -> None:
    (gift / "scores").symlink_to(home)
    with pytest.raises(UsageError, match=LINK):
        write_scores(gift, "key", [])
    (gift / "scores").unlink()
    (gift / "scores").mkdir()
    (gift / "scores" / ".writer").symlink_to(home)
    with pytest.raises(UsageError, match=LINK):
        write_scores(gift, "key", [])


def test_jobs_are_not_written_down_where_a_link_leads(gift: Path, home: Path) -> None:
    (gift / ".launch").symlink_to(home)
    with pytest.raises(UsageError, match=LINK):
        LaunchFile(gift).record_handles({"key": "job"})
    LaunchFile(gift).remove()


def test_a_claim_is_neither_read_from_nor_written_to_a_link(home: Path, tmp_path: Path) -> None:
    store = CellStore(tmp_path, "key")
    store.partial.mkdir()
    (store.partial / ".claim-00000007").symlink_to(home / ".bashrc")
    os.mkfifo(store.partial / ".claim-00000006")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vcpo_bench.files.claims.LEASE_SECONDS", 0.2)
        with store.open():  # a claim that cannot be read is silent, and is followed after a lease
            assert sorted(path.name for path in store.partial.iterdir()) == [".claim-00000008"]

"""A stranger's folder while it is mirrored: no file in it says where the tracker sends what, or with which key."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from vcpo_bench.bench.outside.mirror.process import mirror_folder
from vcpo_bench.bench.outside.trackers.catalog import TRACKERS
from vcpo_bench.bench.outside.trackers.wandb import Wandb
from vcpo_bench.errors import UsageError
from vcpo_bench.files.folders import working_at_root


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_wandb_takes_no_settings_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Wandb reads `wandb/settings` of the working directory, and a file of the folder for configuration."""
    read: list[tuple[Path, str | None]] = []

    class Settings:
        def __init__(self, settings_system: str | None = None) -> None:
            self.system = settings_system

    fake = ModuleType("wandb")
    fake.Settings, fake.init = Settings, lambda **_: None  # type: ignore[attr-defined]
    fake.setup = lambda settings: read.append((Path.cwd(), settings and settings.system))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", "restored")
        monkeypatch.delenv(f"WANDB_{name}_DIR")
    monkeypatch.chdir(tmp_path)
    Wandb(mode=mode).connect(tmp_path)
    assert read == [(Path("/"), os.devnull if mode == "offline" else None)]
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize("tracker", TRACKERS.names())
def test_no_tracker_writes_where_a_link_leads(
    tmp_path: Path, make_results: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tracker: str
) -> None:
    """An unfinished event file of a cell is removed: through a link, that would be a folder of the user."""
    folder = make_results(tmp_path / "gift", methods=("clip",), lags=(1,), seeds=(0,), steps=20)
    home = tmp_path / "home"
    for cell in (folder / "cells").iterdir():
        (home / cell.name).mkdir(parents=True)
        (home / cell.name / "thesis").write_text("mine")
    (folder / tracker).symlink_to(home)
    connection: Any = SimpleNamespace(start=lambda *_: pytest.fail("it was started"))
    to = TRACKERS.parse(tracker)
    monkeypatch.setattr(type(to), "connect", lambda self, where: connection)
    with pytest.raises(UsageError, match=f"{tracker} is a link, which is not followed"):
        mirror_folder(folder, to, None)
    assert {path.read_text() for path in home.rglob("thesis")} == {"mine"}


@pytest.mark.parametrize("tracker", TRACKERS.names())
def test_no_tracker_opens_a_database_of_the_user(tmp_path: Path, tracker: str) -> None:
    (tmp_path / "mine.db").touch()
    own = TRACKERS.parse(tracker).kept(tmp_path)
    assert own == tmp_path / tracker
    (own / "vcpo-bench.db").symlink_to(tmp_path / "mine.db")
    with pytest.raises(UsageError, match="is a link, which is not followed"):
        TRACKERS.parse(tracker).kept(tmp_path)


def test_a_library_is_called_at_the_root_and_the_folder_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ZeroDivisionError), working_at_root():
        assert Path.cwd() == Path("/")
        raise ZeroDivisionError
    assert Path.cwd() == tmp_path

"""What a release would upload, built from this checkout, installed and used as somebody would who has only that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import within
from shipped import NOT_SHIPPED, of_the_package

pytest.importorskip("twine", reason="runs in .ci/integrations packaging")

CHECKOUT = Path(__file__).resolve().parents[2]
TO_BUILD = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"}
MADE = {"PKG-INFO", "setup.cfg", "built_from.json"}
FACTS = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}

Command = Callable[..., str]


def said(*command: object, cwd: Path) -> str:
    """What a command prints, with nothing on its path but what is installed; its errors too when it fails."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=plain, capture_output=True, text=True, timeout=within(600))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def state() -> dict[str, object]:
    """Commit of the checkout, and whether it has changes."""
    commit = said("git", "rev-parse", "HEAD", cwd=CHECKOUT).strip()
    return {"commit": commit, "uncommitted": bool(said("git", "status", "--porcelain", cwd=CHECKOUT))}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, state: dict[str, object]) -> dict[str, Path]:
    """The source archive, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    said(sys.executable, "-m", "build", "--outdir", folder, CHECKOUT, cwd=folder)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return {"sdist": archive, "wheel": wheel}


@pytest.fixture(scope="module", params=["sdist", "wheel"])
def installed(request: pytest.FixtureRequest, built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the programs of an environment that has one of the two, and what it asks for."""
    folder = tmp_path_factory.mktemp(request.param) / "venv"
    said(sys.executable, "-m", "venv", folder, cwd=folder.parent)
    said(folder / "bin" / "pip", "install", "--quiet", "--no-compile", built[request.param], cwd=folder.parent)
    return folder / "bin"


def wanted(tracked: list[str]) -> set[str]:
    """Tracked files that belong to the package."""
    return {name for name in tracked if of_the_package(name)}


def test_an_index_would_take_both(built: dict[str, Path]) -> None:
    printed = said(sys.executable, "-m", "twine", "check", "--strict", *built.values(), cwd=CHECKOUT)
    assert printed.count("PASSED") == len(built) == 2


def test_the_source_archive_holds_the_package_and_what_builds_it(built: dict[str, Path], tracked: list[str]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        held = {one.name.partition("/")[2] for one in archive if not one.isdir()}
    assert held == wanted(tracked) | TO_BUILD | MADE
    assert {name.partition("/")[0] for name in held}.isdisjoint(NOT_SHIPPED)


def test_the_wheel_built_from_it_holds_the_package_alone(built: dict[str, Path], tracked: list[str]) -> None:
    held = set(zipfile.ZipFile(built["wheel"]).namelist())
    facts = "-".join(built["wheel"].name.split("-")[:2]) + ".dist-info"
    assert held == {f"vcpo_bench/{name}" for name in wanted(tracked) | {"built_from.json"}} | {
        f"{facts}/{name}" for name in FACTS
    }


def test_each_installs_and_works_away_from_the_checkout(
    installed: Path, tmp_path: Path, state: dict[str, object]
) -> None:
    command = installed / "vcpo-bench"
    where = said(installed / "python", "-c", "import vcpo_bench; print(vcpo_bench.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    version = said(installed / "python", "-c", "import vcpo_bench; print(vcpo_bench.__version__)", cwd=tmp_path)
    assert said(command, "--version", cwd=tmp_path) == f"vcpo-bench {version}"
    assert "vcpo" in said(command, "ls", "methods", cwd=tmp_path)

    tiny = ("--methods", "vcpo", "--staleness", "1", "--seeds", "1", "--steps", "2", "--no-controls")
    said(command, "run", *tiny, "--out", "results", cwd=tmp_path)
    (cell,) = (tmp_path / "results" / "cells").iterdir()
    facts = json.loads((cell / "cell.json").read_text())
    assert facts["status"] == "completed"
    assert {name: facts["provenance"][name] for name in state} == state
    said(command, "report", "results", cwd=tmp_path)
    assert "<svg" in (tmp_path / "results" / "report.html").read_text()

"""What a wheel holds: the rooms with their data, found by looking, and nothing of an earlier build."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from shipped import of_the_package

REPOSITORY = Path(__file__).resolve().parents[2]

WheelOf = Callable[[Path], list[str]]


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.slow
def test_the_wheel_holds_the_tracked_files_of_the_rooms(source: Path, wheel_of: WheelOf, tracked: list[str]) -> None:
    before = files(source)
    wanted = [name for name in tracked if of_the_package(name)]
    assert wheel_of(source) == sorted(f"vcpo_bench/{name}" for name in [*wanted, "built_from.json"])
    assert files(source) == before, "the build left something in the checkout"


@pytest.mark.slow
def test_a_second_wheel_has_what_the_checkout_has_then(source: Path, wheel_of: WheelOf) -> None:
    first = set(wheel_of(source))
    (source / "methods" / "snis.py").unlink()
    (source / "errors.py").rename(source / "mistakes.py")
    room = source / "bench" / "fresh"
    (room / "samples").mkdir(parents=True)
    (room / "__init__.py").touch()
    (room / "samples" / "_words").touch()
    second = set(wheel_of(source))
    assert first - second == {"vcpo_bench/methods/snis.py", "vcpo_bench/errors.py"}
    assert second - first == {
        "vcpo_bench/mistakes.py",
        "vcpo_bench/bench/fresh/__init__.py",
        "vcpo_bench/bench/fresh/samples/_words",
    }


@pytest.mark.slow
def test_what_lies_about_in_a_checkout_stays_out(source: Path, wheel_of: WheelOf) -> None:
    clean = wheel_of(source)
    for name in (
        "build/lib/vcpo_bench/methods/gone.py",  # of a setuptools that built here
        "vcpo_bench.egg-info/SOURCES.txt",
        "results/default/cells/__init__.py",
        "tests/__init__.py",
        "docs/__init__.py",
        "methods/__pycache__/gone.cpython-311.pyc",
        "configs/.mine.yaml",
        "conftest.py",
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("vcpo_bench/methods/gone.py\n" if name.endswith(".txt") else "")
    assert wheel_of(source) == clean


def test_every_folder_with_python_files_is_a_package(tracked: list[str]) -> None:
    folders = {Path(name).parent for name in tracked if name.endswith(".py") and of_the_package(name)}
    assert [folder for folder in folders if f"{folder}/__init__.py".removeprefix("./") not in tracked] == []


def test_a_bare_import_of_any_room_is_refused_by_ruff(tracked: list[str]) -> None:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    rooms = {name.split("/")[0] for name in tracked if "/" in name and of_the_package(name)}
    assert rooms <= set(settings["flake8-tidy-imports"]["banned-api"])

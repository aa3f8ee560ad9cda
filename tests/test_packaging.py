"""What the built wheel holds, and that the installed command works anywhere."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


def pyproject() -> dict:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_package_list_equals_the_folders() -> None:
    listed = set(pyproject()["tool"]["setuptools"]["packages"])
    ignored = {"tests", "build", "results", ".types", ".git", "docs", "dist"}
    folders = {
        ".".join(("vcpo_bench", *path.parent.relative_to(REPOSITORY).parts))
        for path in REPOSITORY.rglob("__init__.py")
        if not ignored & set(path.relative_to(REPOSITORY).parts) and ".venv" not in str(path)
    }
    assert listed == folders


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Contents of a wheel built from a copy of the tracked files."""
    work = tmp_path_factory.mktemp("wheel")
    source = work / "source"
    source.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    for name in filter(None, files):
        if (REPOSITORY / name).is_file() and not name.startswith((".types", "tests/", "docs/")):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((REPOSITORY / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(work), str(source)]
    subprocess.run(command, check=True, timeout=300)
    (built,) = work.glob("*.whl")
    return zipfile.ZipFile(built).namelist()


def test_the_only_top_level_name_is_vcpo_bench(wheel_names: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"vcpo_bench"}


def test_the_wheel_holds_the_data_and_no_tests(wheel_names: list[str]) -> None:
    assert "vcpo_bench/py.typed" in wheel_names
    assert {f"vcpo_bench/bench/warm/{task}.safetensors" for task in ("chain", "walk", "walk-eos")} <= set(wheel_names)
    tasks = {name for name in wheel_names if name.startswith("vcpo_bench/bench/lm_eval_tasks/")}
    assert {Path(name).name for name in tasks} >= {"chain.yaml", "countdown-sampled.yaml", "_tokens", "_words"}
    assert not [name for name in wheel_names if "/tests/" in name or "test_" in name]


def test_the_command_works_from_another_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vcpo_bench", "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "run" in done.stdout
    assert "show" in done.stdout

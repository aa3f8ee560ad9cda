"""Installed once, installed again, installed editable: only `vcpo_bench` can be imported, and only what there is."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from patience import within


def leaked(environment, tracked: list[str]) -> str:
    """Names of files and folders at the root that can be imported as they are, without `vcpo_bench.` before them."""
    tops = {name.split("/")[0].removesuffix(".py") for name in tracked}
    names = sorted(name for name in tops if name.isidentifier() and not name.startswith("__"))
    return environment.python_says(f"from importlib.util import find_spec; print(*filter(find_spec, {names}))").strip()


@pytest.mark.slow
def test_installing_again_removes_a_deleted_module(source: Path, environment, tracked: list[str]) -> None:
    environment.install(source)
    installed = environment.site / "vcpo_bench"
    assert (installed / "methods" / "snis.py").exists()
    (source / "methods" / "snis.py").rename(source / "methods" / "renamed.py")
    environment.install("--force-reinstall", source)
    assert (installed / "methods" / "renamed.py").exists()
    assert not (installed / "methods" / "snis.py").exists()
    assert leaked(environment, tracked) == ""
    assert (environment.python.parent / "vcpo-bench").exists()


@pytest.mark.slow
def test_an_editable_install_sees_new_modules_at_once(source: Path, environment, tracked: list[str]) -> None:
    environment.install("-e", source)
    (source / "bench" / "fresh").mkdir()
    (source / "bench" / "fresh" / "__init__.py").write_text("ROOM = 'fresh'\n")
    assert environment.python_says("from vcpo_bench.bench.fresh import ROOM; print(ROOM)") == "fresh\n"
    assert leaked(environment, tracked) == ""


def test_the_command_works_from_another_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vcpo_bench", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=within(60))
    assert "run" in done.stdout
    assert "show" in done.stdout


def commit_of(folder: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=within(60))
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True, timeout=within(60)).strip()


@pytest.mark.slow
def test_an_installed_package_says_its_commit(source: Path, environment) -> None:
    commit = commit_of(source)
    environment.install(source)
    recorded = json.loads((environment.site / "vcpo_bench" / "built_from.json").read_text())
    assert recorded == {"commit": commit, "uncommitted": False}

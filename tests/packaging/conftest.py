"""A copy of the checkout to build from, an environment to install into, and the commands that do it, all offline."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import setuptools
from patience import within

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*command: object, cwd: Path | None = None) -> str:
    """What a command prints; its errors too when it fails."""
    plain = {name: text for name, text in os.environ.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=plain, capture_output=True, text=True, timeout=within(300))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def tracked() -> list[str]:
    """Paths of the files that git tracks and that are still there."""
    names = run("git", "ls-files", "-z", cwd=REPOSITORY).split("\0")
    return [name for name in names if name and (REPOSITORY / name).is_file()]


@pytest.fixture
def source(tmp_path: Path, tracked: list[str]) -> Path:
    """A copy of the tracked files, links as links."""
    for name in tracked:
        target = tmp_path / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, target, follow_symlinks=False)
    return tmp_path / "source"


@pytest.fixture
def wheel_of(tmp_path: Path) -> Callable[[Path], list[str]]:
    """`wheel_of(checkout)`: sorted names of the package's files in a wheel built from it."""

    def build(checkout: Path) -> list[str]:
        folder = tmp_path / "wheels"
        shutil.rmtree(folder, ignore_errors=True)
        offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
        run(sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", folder, checkout)
        (built,) = folder.glob("*.whl")
        return sorted(name for name in zipfile.ZipFile(built).namelist() if ".dist-info/" not in name)

    return build


class Environment:
    """An environment of its own that has setuptools and nothing else."""

    def __init__(self, folder: Path) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        self.python = folder / "bin" / "python"
        self.site = Path(self.python_says("import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        installed = Path(setuptools.__file__).parents[1]
        for path in (*installed.glob("setuptools*"), installed / "_distutils_hack"):
            (self.site / path.name).symlink_to(path)

    def install(self, *what: object) -> None:
        """`pip install WHAT` in this environment."""
        offline = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
        run(sys.executable, "-m", "pip", "--python", self.python, "install", *offline, *what)

    def python_says(self, code: str) -> str:
        """What this code prints, run in a folder that has nothing to import."""
        return run(self.python, "-c", code, cwd=self.python.parent)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")

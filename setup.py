"""Finds the packages and their data by looking, and builds outside of the checkout.

The repository root is the package `vcpo_bench`: a folder with an `__init__.py` is a sub-package, and every other file
in it is data. setuptools would build in `build/lib`, from where a module deleted since is packed into the next wheel.
"""

import atexit
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).resolve().parent
NOT_SHIPPED = ("tests", "docs", "studies", "tools", "notebooks", "examples", "results", "build", "dist")
COMMIT_FILE = "built_from.json"
DEVELOPMENT_MODULES = ("setup", "noxfile", "conftest")


def find_root_modules() -> list[str]:
    """Names of the modules beside this file that belong to the package."""
    return sorted(path.stem for path in ROOT.glob("*.py") if path.stem not in DEVELOPMENT_MODULES)


def code_state() -> dict[str, object]:
    """Commit that is built and whether it has uncommitted changes; of a source archive, what it was made from."""
    if (ROOT / COMMIT_FILE).exists():
        return dict(json.loads((ROOT / COMMIT_FILE).read_text(encoding="utf-8")))
    commit = git("rev-parse", "HEAD") if (ROOT / ".git").exists() else None
    return {"commit": commit, "uncommitted": bool(git("status", "--porcelain")) if commit else None}


def git(*arguments: str) -> str | None:
    """What git says of this folder; None where it says nothing."""
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


BUILT_FROM = code_state()  # before a build puts folders of its own into the checkout


def record_commit(folder: Path) -> None:
    """Write which commit is built, so that results of an installed package can say where their code came from."""
    (folder / COMMIT_FILE).write_text(json.dumps(BUILT_FROM), encoding="utf-8")


class SourceArchive(sdist):
    """Records the commit in the archive, which has no git."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the files, and add the commit."""
        super().make_release_tree(base_dir, files)
        record_commit(Path(base_dir))


class BuildModules(build_py):
    """Leaves the root modules that only development needs out of the package, and records the commit in it."""

    def run(self) -> None:
        """Build; an editable install asks git itself."""
        super().run()
        if not self.editable_mode:
            record_commit(Path(self.build_lib) / "vcpo_bench")

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Modules of one package as (package, module, file)."""
        found = super().find_package_modules(package, package_dir)
        return [one for one in found if package != "vcpo_bench" or one[1] in find_root_modules()]


def find_rooms() -> list[str]:
    """Dotted names, relative to the root, of every sub-package."""
    return find_packages(str(ROOT), exclude=[pattern for name in NOT_SHIPPED for pattern in (name, f"{name}.*")])


def find_data(room: str) -> list[str]:
    """Data files of one sub-package, relative to its folder; those of its own sub-packages are theirs."""
    folder = ROOT.joinpath(*room.split("."))
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if is_data(path, folder)]


def is_data(path: Path, folder: Path) -> bool:
    """Whether a path is a data file of the sub-package in this folder."""
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    owner = next(parent for parent in path.parents if (parent / "__init__.py").exists())
    return path.is_file() and path.suffix not in (".py", ".pyc") and not hidden and owner == folder


def scratch_folder() -> str:
    """A folder for what a build leaves behind, deleted when this process ends."""
    folder = tempfile.mkdtemp(prefix="vcpo-bench-build-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


if __name__ == "__main__":
    rooms = find_rooms()
    scratch = scratch_folder()
    setup(
        packages=["vcpo_bench", *(f"vcpo_bench.{room}" for room in rooms)],
        package_data={"vcpo_bench": ["__init__.pyi", "py.typed"]}
        | {f"vcpo_bench.{room}": find_data(room) for room in rooms},
        cmdclass={"build_py": BuildModules, "sdist": SourceArchive},
        options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
    )

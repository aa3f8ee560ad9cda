"""Finds the packages and their data by looking, and builds outside of the checkout.

The repository root is the package `vcpo_bench`: a folder with an `__init__.py` is a sub-package, and every other file
in it is data. setuptools would build in `build/lib`, from where a module deleted since is packed into the next wheel.
"""

import atexit
import shutil
import tempfile
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
NOT_SHIPPED = ("tests", "docs", "tools", "notebooks", "examples", "results", "build", "dist")
DEVELOPMENT_MODULES = ("setup", "noxfile", "conftest")


def find_root_modules() -> list[str]:
    """Names of the modules beside this file that belong to the package."""
    return sorted(path.stem for path in ROOT.glob("*.py") if path.stem not in DEVELOPMENT_MODULES)


class BuildModules(build_py):
    """Leaves the root modules that only development needs out of the package."""

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
        cmdclass={"build_py": BuildModules},
        options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
    )

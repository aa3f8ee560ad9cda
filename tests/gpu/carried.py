"""The packages that a machine without a network lacks, carried along in a folder, and the suite itself, not installed.

    python tests/gpu/carried.py          # with a network: fetches them into results/gpu-carried, for Python 3.12

`day.py` puts both on the import path of what it starts. Nothing is installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "results" / "gpu-carried"
"""Ignored by git; a folder per Python version in it."""
GGUF = ("gguf==0.19.0",)
"""transformers reads the weights of stage 2 with it."""
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64")


def import_path(folder: Path) -> dict[str, str]:
    """The variable that lets a process import `vcpo_bench`, the checkout's root under another name, and its packages.

    Args:
        folder: Where a link to the checkout may be made.
    """
    links = folder / "import"
    links.mkdir(exist_ok=True)
    link = links / "vcpo_bench"
    if link.resolve() != ROOT:
        link.unlink(missing_ok=True)
        link.symlink_to(ROOT, target_is_directory=True)
    packages = FOLDER / f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [str(links), *([str(packages)] if packages.is_dir() else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(found)}


def fetch(python: str) -> Path:
    """Download the wheels for a Python version on Linux and unpack them; returns their folder."""
    out = FOLDER / python
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", wheels]
        command += ["--implementation", "cp", "--python-version", python]
        command += [word for name in PLATFORMS for word in ("--platform", name)]
        subprocess.run([*command, "--no-deps", *GGUF], check=True)
        for wheel in Path(wheels).iterdir():
            with zipfile.ZipFile(wheel) as file:
                file.extractall(out)
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12", help="version of Python there")
    print(fetch(parser.parse_args().python))

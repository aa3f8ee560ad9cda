"""The commit is recorded where git is not: in a wheel, and in one built from a source archive."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from patience import within


def commit_of(folder: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=within(60))
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True, timeout=within(60)).strip()


@pytest.mark.slow
def test_an_installed_package_says_its_commit_also_by_way_of_an_archive(
    source: Path, environment, tmp_path: Path
) -> None:
    commit = commit_of(source)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "sdist", "-d", tmp_path], cwd=source, check=True, timeout=within(120)
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "archive", filter="data")
    (unpacked,) = (tmp_path / "archive").iterdir()
    assert not (unpacked / ".git").exists()
    for place in (source, unpacked):
        environment.install("--force-reinstall", place)
        recorded = json.loads((environment.site / "vcpo_bench" / "built_from.json").read_text())
        assert recorded == {"commit": commit, "uncommitted": False}

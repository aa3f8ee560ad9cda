"""The commit is recorded where git is not: in an installed package. `test_distributions.py` asks archives for it."""

import json
import subprocess
from pathlib import Path

import pytest
from patience import within


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

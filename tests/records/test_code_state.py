"""Where results say that they come from."""

import json
import subprocess
from pathlib import Path

from vcpo_bench.records.code_state import code_state


def test_an_installed_package_knows_the_commit_it_was_built_from(tmp_path: Path) -> None:
    assert code_state(tmp_path) == {"commit": None, "uncommitted": None}
    (tmp_path / "built_from.json").write_text(json.dumps({"commit": "abc", "uncommitted": True}))
    assert code_state(tmp_path) == {"commit": "abc", "uncommitted": True}


def test_a_working_tree_knows_its_commit_and_whether_it_was_changed_since(tmp_path: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    (tmp_path / "a.py").write_text("")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=60)
    heads = (tmp_path / ".git" / "refs" / "heads").rglob("*")
    (written,) = [file.read_text().strip() for file in heads if file.is_file()]
    assert code_state(tmp_path) == {"commit": written, "uncommitted": False}
    (tmp_path / "a.py").write_text("changed")
    assert code_state(tmp_path) == {"commit": written, "uncommitted": True}

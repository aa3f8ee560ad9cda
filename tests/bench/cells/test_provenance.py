"""Where results say that they come from."""

import json
from pathlib import Path

from vcpo_bench.bench.cells.provenance import _code_state


def test_an_installed_package_knows_the_commit_it_was_built_from(tmp_path: Path) -> None:
    assert _code_state(tmp_path) == {"commit": None, "uncommitted": None}
    (tmp_path / "built_from.json").write_text(json.dumps({"commit": "abc", "uncommitted": True}))
    assert _code_state(tmp_path) == {"commit": "abc", "uncommitted": True}

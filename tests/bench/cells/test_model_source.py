"""What a model is known by."""

from pathlib import Path

import pytest

from vcpo_bench.bench.cells.model_source import fingerprint


@pytest.mark.parametrize(
    ("name", "counts"), [("model.safetensors", True), ("config.json", True), ("README.md", False), ("notes.txt", False)]
)
def test_weights_and_settings_decide_the_fingerprint_and_notes_do_not(tmp_path: Path, name: str, counts: bool) -> None:
    found = []
    for content in ("old", "new"):
        folder = tmp_path / content
        folder.mkdir()
        for each in ("model.safetensors", "config.json", "README.md", "notes.txt"):
            (folder / each).write_text(content if each == name else "same")
        found.append(fingerprint(folder))
    assert (found[0] != found[1]) == counts

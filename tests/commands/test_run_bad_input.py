"""Requests that cannot be carried out: one clear line, exit code 2, nothing written."""

from pathlib import Path

import pytest
import torch
from command_line import RUN, call


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--methods", "vcop"], "vcpo"),
        (["--methods", "clip(hihg=0.3)"], "high"),
        (["--methods", "clip(high=0.3"], ">>>"),
        (["--methods", "clip(high=two)"], "two"),
        (["--methods", ","], "--methods"),
        (["--methods", "clip(anchor=proximal)"], "proximal"),
        (["--task", "chian"], "chain"),
        (["--task", "chain(n=0)"], "n=0"),
        (["--staleness", "-1"], "-1"),
        (["--staleness", "1.5"], "1.5"),
        (["--staleness", "many"], "many"),
        (["--lr", "nan"], "nan"),
        (["--lr", "0"], "positive"),
        (["--lr", "inf"], "inf"),
        (["--seeds", "0"], "--seeds 0"),
        (["--steps", "0"], "--steps 0"),
        (["--prompts", "-3"], "-3"),
        (["--record", "all"], "diagnostics"),
        (["--config", "qick"], "quick"),
        (["--keep-checkpoints", "50"], "every=50"),
        (["--jobs", "-2"], "-2"),
        (["--staleness"], "--staleness"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(tmp_path: Path, flags: list[str], said: str) -> None:
    result = call("run", "--out", str(tmp_path / "out"), *flags)
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert "Traceback" not in result.output
    if result.stderr.startswith("error:"):
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_unwritable_and_foreign_folders(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").touch()
    assert "holds other files" in call(*RUN, "--out", str(tmp_path / "thesis")).stderr
    (tmp_path / "file").touch()
    result = call(*RUN, "--out", str(tmp_path / "file" / "deep"))
    assert result.exit_code == 2
    assert "is a file; choose another folder" in result.stderr


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_device_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    result = call("run", "--device", "cuda", "--out", str(tmp_path / "out"), *more)
    assert result.exit_code == 2
    assert result.stderr == "error: --device cuda: this machine has 0 CUDA devices; use cpu\n"
    assert not (tmp_path / "out").exists()

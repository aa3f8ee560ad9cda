"""Files of the adapter in a checkpoint."""

from pathlib import Path

import pytest
import torch

from vcpo_bench.adapters import checkpoint
from vcpo_bench.errors import UsageError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    content = {"waiting": [{"a": torch.arange(3), "names": ["x"]}], "step": 4, "previous_gradient": None}
    checkpoint.write(tmp_path / "checkpoint-4", 1, content)
    got = checkpoint.read(tmp_path / "checkpoint-4", 1)
    assert torch.equal(got["waiting"][0]["a"], torch.arange(3))
    assert (got["step"], got["waiting"][0]["names"]) == (4, ["x"])
    assert [path.name for path in (tmp_path / "checkpoint-4").iterdir()] == ["vcpo_bench_rank1.pt"]


def test_a_missing_file_and_another_lag_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"vcpo_bench_rank0.pt is missing: .* as many processes"):
        checkpoint.read(tmp_path, 0)
    with pytest.raises(UsageError, match=r"written with lag fifo\(2\), this run uses fifo\(8\)"):
        checkpoint.check_lag(2, 8)
    checkpoint.check_lag(2, 2)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    torch.save({"format": checkpoint.FORMAT + 1}, checkpoint.path_in(tmp_path, 0))
    with pytest.raises(UsageError, match="this version of vcpo-bench reads 1"):
        checkpoint.read(tmp_path, 0)


def test_code_in_a_file_is_not_run(tmp_path: Path) -> None:
    torch.save({"format": 1, "waiting": Path("x")}, checkpoint.path_in(tmp_path, 0))
    with pytest.raises(UsageError, match="cannot be read"):
        checkpoint.read(tmp_path, 0)

"""Names and numbers at their limits, and what the recorded machine is."""

import os
from pathlib import Path

import pytest

from vcpo_bench.bench.cells.cell_store import numbered
from vcpo_bench.bench.cells.flag_values import every, updates
from vcpo_bench.bench.cells.provenance import provenance
from vcpo_bench.errors import UsageError


def test_checkpoints_are_folders_with_a_number(tmp_path: Path) -> None:
    for name in ("checkpoint-7", "checkpoint-07x", "checkpoint-", "checkpoint-1234567890123"):
        (tmp_path / name).mkdir()
    (tmp_path / "checkpoint-9").write_text("a file")
    assert numbered(tmp_path, "checkpoint-") == {7: tmp_path / "checkpoint-7"}


def test_the_smallest_values_of_flags() -> None:
    assert every("every=1") == 1
    assert updates("0,3") == [0, 3]
    for wrong in ("every=0", "every=-1"):
        with pytest.raises(UsageError, match="write every=N"):
            every(wrong)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a system that binds processes to cores")
def test_the_recorded_cores_are_those_that_this_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert provenance.__wrapped__()["cores"] == 1
    finally:
        os.sched_setaffinity(0, allowed)

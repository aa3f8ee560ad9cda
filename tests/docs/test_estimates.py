"""What `docs/scale.md` says of which model fits on one GPU is what the arithmetic gives."""

from dataclasses import replace
from pathlib import Path

import pytest

from vcpo_bench.bench.machine.gpu_estimate import GPUS, Workload, fits, memory
from vcpo_bench.bench.machine.model_shapes import KNOWN

WORK = Workload(32, 16, 2048, dtype="bfloat16", checkpointing=True, micro_tokens=16384, slots=64)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"


@pytest.mark.parametrize(
    ("model", "lora", "gpu", "fitting"),
    [
        ("Qwen2.5-1.5B", 0, "H100-80", True),
        ("Qwen2.5-7B", 0, "H200", False),
        ("Qwen2.5-14B", 64, "H100-80", True),
        ("Qwen2.5-32B", 64, "H200", True),
    ],
)
def test_what_the_first_table_of_the_page_says_fits_is_what_the_arithmetic_says(
    model: str, lora: int, gpu: str, fitting: bool
) -> None:
    (chosen,) = [one for one in GPUS if one.name == gpu]
    assert fits(memory(KNOWN[model], replace(WORK, lora=lora)), chosen) == fitting
    assert (
        "all weights of 7B need more than one GPU of 141 GB, and with `--lora` 14B fits on one of 80 GB "
        "and 32B on one of 141 GB"
    ) in PAGE.read_text(encoding="utf-8")

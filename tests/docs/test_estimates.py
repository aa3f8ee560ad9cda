"""What `docs/scale.md` says of which model fits on how many GPUs is what the arithmetic gives."""

from dataclasses import replace
from pathlib import Path

import pytest
from doc_pages.estimates import SHARDS, WORK

from vcpo_bench.bench.machine.gpu_estimate import GPUS, fits, memory
from vcpo_bench.bench.machine.model_shapes import KNOWN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"


@pytest.mark.parametrize(
    ("model", "lora", "gpu", "least"),
    [
        ("Qwen2.5-7B", 0, "H100-80", 4),
        ("Qwen2.5-7B", 0, "H200", 2),
        ("Qwen2.5-14B", 0, "H200", 4),
        ("Qwen2.5-14B", 64, "H100-80", 1),
        ("Qwen2.5-32B", 64, "H200", 1),
    ],
)
def test_what_the_first_table_of_the_page_says_fits_is_what_the_arithmetic_says(
    model: str, lora: int, gpu: str, least: int
) -> None:
    (chosen,) = [one for one in GPUS if one.name == gpu]
    work = replace(WORK, lora=lora)
    fitting = [n for n in SHARDS if fits(memory(KNOWN[model], replace(work, shards=n)), chosen)]
    assert fitting[0] == least
    assert (
        "all weights of 7B from 4 GPUs of 80 GB or 2 of 141 GB, of 14B from 4 of 141 GB. "
        "With `--lora`, 14B fits on one of 80 GB and 32B on one of 141 GB"
    ) in PAGE.read_text(encoding="utf-8")

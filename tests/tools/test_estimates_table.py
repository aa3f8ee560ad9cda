"""The table of estimates in the docs is what the arithmetic gives, and says what it is."""

from dataclasses import replace
from pathlib import Path
from runpy import run_path

import pytest

from vcpo_bench.bench.machine.gpu_estimate import GPUS, fits, memory
from vcpo_bench.bench.machine.model_shapes import KNOWN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "scale.md"


def test_the_table_is_current() -> None:
    made = run_path(str(ROOT / "tools" / "make_estimates.py"))
    page = made["PAGE"].read_text()
    assert made["rewritten"](page) == page, "run: python tools/make_estimates.py"
    assert made["render"]() in page
    assert "arithmetic, not measured" in page.partition(made["BEGIN"])[0].rpartition("\n## ")[2]


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
    made = run_path(str(ROOT / "tools" / "make_estimates.py"))
    (chosen,) = [one for one in GPUS if one.name == gpu]
    work = replace(made["WORK"], lora=lora)
    fitting = [n for n in made["SHARDS"] if fits(memory(KNOWN[model], replace(work, shards=n)), chosen)]
    assert fitting[0] == least
    assert (
        "all weights of 7B from 4 GPUs of 80 GB or 2 of 141 GB, of 14B from 4 of 141 GB. "
        "With `--lora`, 14B fits on one of 80 GB and 32B on one of 141 GB"
    ) in PAGE.read_text(encoding="utf-8")

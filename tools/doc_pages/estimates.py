"""The table of estimates in `docs/scale.md`: cells of 1.5 to 32 billion parameters on one GPU.

It is arithmetic (`bench/machine/gpu_estimate.py`), not a measurement.
"""

from dataclasses import replace

from doc_pages.marked import with_table
from vcpo_bench.bench.machine.gpu_estimate import GIB, GPUS, Gpu, Workload, fits, memory, update_time
from vcpo_bench.bench.machine.model_shapes import KNOWN, ModelShape

MODELS = ("Qwen2.5-1.5B", "Qwen2.5-7B", "Qwen2.5-14B", "Qwen2.5-32B")
SHOWN = ("H100-80", "H200")
WORK = Workload(32, 16, 2048, dtype="bfloat16", checkpointing=True, micro_tokens=16384, slots=64)
HEADER = f"| model | trained | {' | '.join(SHOWN)} |\n|---|---|{'---|' * len(SHOWN)}\n"


def table() -> str:
    """The table."""
    rows = []
    for name in MODELS:
        for lora in (0, 64):
            trained = f"LoRA {lora}" if lora else "all weights"
            needs = [_needs(KNOWN[name], replace(WORK, lora=lora), gpu) for gpu in GPUS if gpu.name in SHOWN]
            rows.append(f"| {name} | {trained} | {' | '.join(needs)} |\n")
    return HEADER + "".join(rows)


def _needs(shape: ModelShape, work: Workload, gpu: Gpu) -> str:
    """Memory, and seconds of an update if that fits."""
    need = memory(shape, work)
    size = f"{need.peak / GIB:.0f} GiB"
    return f"{size}, {update_time(shape, work, gpu).total:.0f} s" if fits(need, gpu) else f"{size}: does not fit"


def page() -> str:
    """The whole page."""
    return with_table("docs/scale.md", table())

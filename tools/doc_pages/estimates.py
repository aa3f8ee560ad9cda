"""The table of estimates in `docs/scale.md`: cells of 1.5 to 32 billion parameters on 1 to 64 GPUs.

It is arithmetic (`bench/machine/gpu_estimate.py`), not a measurement.
"""

from dataclasses import replace

from doc_pages.marked import with_table
from vcpo_bench.bench.machine.gpu_estimate import GIB, GPUS, Gpu, Workload, fits, memory, update_time
from vcpo_bench.bench.machine.model_shapes import KNOWN, ModelShape

MODELS = ("Qwen2.5-1.5B", "Qwen2.5-7B", "Qwen2.5-14B", "Qwen2.5-32B")
SHOWN = ("H100-80", "H200")
SHARDS = (1, 2, 4, 8)
"""GPUs of one cell; the last are all of one machine, more than which a cell cannot have."""
MACHINES = (2, 4, 8)
WORK = Workload(32, 16, 2048, dtype="bfloat16", checkpointing=True, micro_tokens=16384, slots=64)
HEADER = (
    "| model | trained | GPU | 1 GPU | 2, `--shards 2` | 4, `--shards 4` | 8, `--shards 8` "
    "| 16: updates per hour | 32 | 64 |\n|---|---|---|---|---|---|---|---|---|---|\n"
)


def table() -> str:
    """The table."""
    rows = []
    for name in MODELS:
        for lora in (0, 64):
            for gpu in (one for one in GPUS if one.name in SHOWN):
                work = replace(WORK, lora=lora)
                trained = f"LoRA {lora}" if lora else "all weights"
                cells = [_needs(KNOWN[name], replace(work, shards=shards), gpu) for shards in SHARDS]
                whole = replace(work, shards=SHARDS[-1])
                many = [_throughput(KNOWN[name], whole, gpu, machines) for machines in MACHINES]
                rows.append(f"| {name} | {trained} | {gpu.name} | {' | '.join(cells + many)} |\n")
    return HEADER + "".join(rows)


def _needs(shape: ModelShape, work: Workload, gpu: Gpu) -> str:
    """Memory of each GPU, and seconds of an update if that fits."""
    need = memory(shape, work)
    size = f"{need.peak / GIB:.0f} GiB"
    return f"{size}, {update_time(shape, work, gpu).total:.0f} s" if fits(need, gpu) else f"{size}: does not fit"


def _throughput(shape: ModelShape, work: Workload, gpu: Gpu, machines: int) -> str:
    """Updates per hour of one cell on each machine."""
    if not fits(memory(shape, work), gpu):
        return "does not fit"
    return f"{machines * 3600 / update_time(shape, work, gpu).total:.0f}"


def page() -> str:
    """The whole page."""
    return with_table("docs/scale.md", table())

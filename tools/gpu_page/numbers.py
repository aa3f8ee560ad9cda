"""What the page about a GPU takes from the recorded results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vcpo_bench.bench.machine.gpu_estimate import GIB, GPUS, Workload, memory, update_time
from vcpo_bench.bench.machine.model_shapes import ModelShape

DOCS = Path(__file__).resolve().parents[2] / "docs"
DATA = DOCS / "benchmarks" / "gpu" / "2026-11-26-h200.json"
SIZES = ("100M-512", "100M-2048", "1B-512", "1B-2048")
PROMPT = 64
"""Tokens before every response of the score norms' batches."""
LAYERS_OF_SAMPLED = 8
"""Of `llama(30M)`, which the samplers were timed with."""
WAYS = {
    "plain": "a step without norms",
    "bookkeeping": "norms with book-keeping: what the suite does",
    "second_backward": "norms, then a second forward and backward",
    "micro_batch_of_one": "every trajectory alone",
}
PARTLY = ("thousand", "arithmetic-30M")
"""Cut, with results that are shown."""


def measured(path: Path = DATA) -> dict[str, dict[str, Any]]:
    """Every measurement by name."""
    return {facts["name"]: facts for facts in json.loads(path.read_text())["measurements"]}


def against_estimate(day: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each size of the score norms' models: GiB and seconds of a plain step, measured and estimated."""
    rows = []
    for size in SIZES:
        result = day[f"norms-{size}"]["result"]
        ways = {row["way"]: row for row in result["ways"]}
        width, heads = result["width"], max(1, result["width"] // 64)
        inner = 8 * width // 3 // 32 * 32
        shape = ModelShape(result["layers"], width, inner, heads, heads, 64, result["vocabulary"], tied=False)
        work = Workload(result["rows"], 1, result["tokens"], prompt_tokens=PROMPT, dtype="bfloat16")
        (gpu,) = (one for one in GPUS if one.name == "H200")
        rows.append(
            {
                "size": size,
                "gib": ways["plain"]["peak_gib"],
                "norms_gib": ways["bookkeeping"]["peak_gib"],
                "estimated_gib": memory(shape, work).peak / GIB,
                "seconds": ways["plain"]["seconds"],
                "norms_seconds": ways["bookkeeping"]["seconds"],
                # the estimate also scores once, which a plain step does not
                "estimated_seconds": update_time(shape, work, gpu).learning * 3 / 4,
            }
        )
    return rows


def layer_milliseconds(day: dict[str, dict[str, Any]], in_update: bool = False) -> dict[str, float]:
    """Milliseconds per layer and sampled token, by sampler of a language model.

    Args:
        day: Of `measured`.
        in_update: Of the sampling in an update, where responses can end; else of responses that cannot.
    """
    rows = {row["sampler"]: row for row in day["sampling"]["result"]["samplers"]}
    found = {}
    for name in ("torch", "generate"):
        row = rows[name]
        batch = row["rows"] * row["length"] / row["tokens_per_second"]
        seconds = row["share_of_update"] * row["seconds_per_update"] if in_update else batch
        found[name] = 1e3 * seconds / row["length"] / LAYERS_OF_SAMPLED
    return found


def bound(value: float) -> str:
    """A largest error, rounded up to two digits."""
    exponent = math.floor(math.log10(value))
    return f"{math.ceil(value / 10 ** (exponent - 1) - 1e-9) / 10:.1f}e{exponent}"


def in_range(values: Sequence[float], digits: int) -> str:
    """The smallest and the largest ratio."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f} times"


def norms_cost(day: dict[str, dict[str, Any]], size: str) -> tuple[float, float]:
    """Time and memory of a step with norms, relative to a plain one."""
    ways = {row["way"]: row for row in day[f"norms-{size}"]["result"]["ways"]}
    plain, own = ways["plain"], ways["bookkeeping"]
    return own["seconds"] / plain["seconds"], own["peak_gib"] / plain["peak_gib"]


def table_of(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)

"""Writes `docs/benchmarks/gpu.md` from what `tests/gpu/day.py` brought home: `python tools/gpu_page.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vcpo_bench.bench.machine.gpu_estimate import GIB, GPUS, Workload, memory, update_time
from vcpo_bench.bench.machine.model_shapes import ModelShape

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "benchmarks" / "gpu" / "2026-11-26-h200.json"
PAGE = DOCS / "benchmarks" / "gpu.md"
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


def measured(path: Path = DATA) -> dict[str, dict[str, Any]]:
    """Every measurement by name."""
    return {facts["name"]: facts for facts in json.loads(path.read_text())["measurements"]}


def page() -> str:
    """The page."""
    day = measured()
    parts = (_head, _equal, _stacks, _norms, _estimate, _samplers, _training, _not_measured)
    return "\n\n".join(part(day) for part in parts) + "\n"


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
                # the estimate also scores once, which a plain step does not
                "estimated_seconds": update_time(shape, work, gpu).learning * 3 / 4,
            }
        )
    return rows


def layer_milliseconds(day: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Milliseconds per layer and sampled token, by sampler of a language model."""
    rows = {row["sampler"]: row for row in day["sampling"]["result"]["samplers"]}
    return {
        name: 1e3 * rows[name]["rows"] / rows[name]["tokens_per_second"] / LAYERS_OF_SAMPLED
        for name in ("torch", "generate")
    }


def _head(day: dict[str, dict[str, Any]]) -> str:
    facts = day["updates"]
    versions, trl = facts["versions"], day["trl-1"]["result"]["trl"]
    return f"""# On a GPU

{facts["date"][:10]}; one {facts["gpu"]} ({facts["gpu_gib"]} GiB), {facts["cores"]} cores, Python {facts["python"]},
torch {versions["torch"]} (CUDA {facts["cuda"]}), transformers {versions["transformers"]}, TRL {trl}.
One session of a quarter of an hour, the first of this suite on a GPU: [`tests/gpu/day.py`](../gpu.md), cut where
the time was used up. Nothing was repeated on a second machine. This page is written by `tools/gpu_page.py` from
[what came home](gpu/{DATA.name}), whose `commit` is that of a copy: commit 149d993f is what ran."""


def _equal(day: dict[str, dict[str, Any]]) -> str:
    updates, stack, clock = day["updates"]["result"], day["equality"]["result"], day["clock"]["result"]
    exact, lags = day["exactness"]["result"], len(day["regimes"]["result"])
    whole, parts = day["trl-1"]["result"], day["trl-4"]["result"]
    language = day["doctor"]["result"]["language model"].removeprefix("ok: ").replace("log-probabilities ", "")
    same = "the same bits" if all(day["determinism"]["result"]["bit_identical"].values()) else "other bits"
    rows = (
        (
            f"gradient of one stale batch, {updates['checked']} methods, against the CPU",
            f"relative error (l2) at most {updates['largest_error']:.1e}",
        ),
        (f"realized lags, {lags} regimes (`async` by its virtual clock), against the CPU", "equal, every update"),
        (
            "`async` by the clock on the wall, sampler process and learner on one GPU, k = 3",
            f"{clock['updates']} updates, lag at most {clock['lag_max']:.0f}",
        ),
        (
            "log-probabilities, sampler against learner at lag 0, tiny policy",
            f"within {day['sampler']['result']['largest_error']:.1e} nats",
        ),
        ("the same for a Llama of 1 M parameters (`doctor --gpu`)", language),
        ("one cell of `vcpo`, 6 updates, twice; and resumed half-way", f"{same}; {same}"),
        (
            f"gradient norms of stacks, 4 updates, {len(stack['differences'])} methods, against cells alone on the CPU",
            f"relative difference at most {stack['largest_difference']:.1e}",
        ),
        (
            f"gradients inside TRL's `GRPOTrainer`, {whole['checked']} expressions, against an oracle",
            f"within {whole['largest_error']:.1e} whole, {parts['largest_error']:.1e} in four micro-batches",
        ),
        (
            "score norms, float32 against float64",
            f"within {exact['float32 against float64']:.1e} of a squared norm",
        ),
        (
            "score norms, bfloat16, against one backward pass per trajectory",
            f"within {exact['bfloat16 against one by one']:.1e}",
        ),
    )
    return f"""## The same numbers as on a CPU

{_table(("what", "result"), rows)}

The same bits twice are what this cell gave, not a promise: a GPU adds in any order."""


def _stacks(day: dict[str, dict[str, Any]]) -> str:
    rows = day["sizes"]["result"]["stacks"]
    thousand = day["thousand"]["result"]
    table = _table(
        ("cells", "ms per update of a cell", "ms per update of the stack", "times one cell alone", "GiB"),
        (
            (
                r["cells"],
                f"{r['ms_per_cell']:.2f}",
                f"{r['ms_per_stack']:.0f}",
                f"{_gain(rows, r):.1f}",
                f"{r['gib']:.2f}",
            )
            for r in rows
        ),
    )
    return f"""## Stacks

`chain`, 16 prompts x 8 responses, `tis` at lag 16, one process:

{table}

Above 128 cells, what `--stack auto` takes on a GPU, nothing is gained. A cell alone gains little over a core of a
CPU: 35 ms on an idle core of [another machine](updates.md). So a GPU pays for many cells.

**A thousand runs in a minute is not reached.** {day["thousand"]["cores"]} processes with stacks of 63 were to make
400 updates of each of 1,000 cells. They had ended {thousand["ended"]} cells when they were stopped for the second
time, after {thousand["wall_seconds"]:.0f} s in all."""


def _gain(rows: Sequence[dict[str, Any]], row: dict[str, Any]) -> float:
    return float(rows[0]["ms_per_cell"] / row["ms_per_cell"])


def _norms(day: dict[str, dict[str, Any]]) -> str:
    lines = []
    for way, text in WAYS.items():
        cells = []
        for size in SIZES:
            (row,) = (one for one in day[f"norms-{size}"]["result"]["ways"] if one["way"] == way)
            cells.append(f"{row['ratio']:.2f} ({1e3 * row['seconds']:.0f} ms, {row['peak_gib']:.1f} GiB)")
        lines.append((text, *cells))
    header = ("one step of 8 trajectories", *(f"{size.replace('-', ', ')} tokens" for size in SIZES))
    return f"""## Score norms

Llamas with random weights, bfloat16, AdamW; times the plain step, with time and peak memory:

{_table(header, lines)}

The exact norms that `vcpo` needs cost 1.2 to 1.7 times a step without them, less for longer responses, and less than
any other way to get them."""


def _estimate(day: dict[str, dict[str, Any]]) -> str:
    table = _table(
        ("model", "GiB, plain", "GiB, with score norms", "GiB, estimated", "s, plain step", "s, estimated"),
        (
            (
                row["size"].replace("-", ", ") + " tokens",
                f"{row['gib']:.1f}",
                f"{row['norms_gib']:.1f}",
                f"{row['estimated_gib']:.1f}",
                f"{row['seconds']:.3f}",
                f"{row['estimated_seconds']:.3f}",
            )
            for row in against_estimate(day)
        ),
    )
    each = layer_milliseconds(day)
    return f"""## The estimate of `--dry-run`

[Its arithmetic](../tasks.md#memory-and-time-an-estimate) against the same steps. The measured step has the optimizer,
the estimated one has not.

{table}

Sampling waits for Python: {each["torch"]:.2f} ms per layer and token with `torch`, {each["generate"]:.2f} with
`generate`. The estimate had assumed 0.4, and now has {each["torch"]:.1f}. Three cells of Qwen2-1.5B were to check the
sum of it all; none got to its end (below)."""


def _samplers(day: dict[str, dict[str, Any]]) -> str:
    names = {
        "built-in": "tiny policy, `chain`",
        "torch": "`llama(30M)`, `torch`",
        "generate": "`llama(30M)`, `generate`",
    }
    table = _table(
        ("sampler", "tokens per second", "rows x tokens", "ms per update", "of it sampling"),
        (
            (
                names[row["sampler"]],
                f"{row['tokens_per_second']:,}",
                f"{row['rows']} x {row['length']}",
                f"{1e3 * row['seconds_per_update']:.0f}",
                f"{100 * row['share_of_update']:.0f}%",
            )
            for row in day["sampling"]["result"]["samplers"]
        ),
    )
    row = next(row for row in day["sampling"]["result"]["samplers"] if row["sampler"] == "torch")
    alone = 1e3 * row["rows"] * row["length"] / row["tokens_per_second"]
    inside = 1e3 * row["share_of_update"] * row["seconds_per_update"]
    return f"""## Sampling in PyTorch

32 prompts x 8 responses, bfloat16 for the Llama. Tokens per second are of responses that cannot end; in the update
they can:

{table}

In an update `torch` samples for {inside:.0f} ms, and {alone:.0f} ms where nothing ends. Why is not found out."""


def _training(day: dict[str, dict[str, Any]]) -> str:
    rows = sorted(day["arithmetic-30M"]["result"]["cells"], key=lambda row: (row["method"], row["staleness"]))
    table = _table(
        ("method", "lag asked", "lag realized", "sampled reward, start", "end", "ESS, median"),
        (
            (
                f"`{row['method']}`",
                row["staleness"],
                f"{row['lag_realized']:.0f}",
                f"{row['start_reward']:.3f}",
                f"{row['final_reward']:.3f}",
                f"{row['ess_ratio_median']:.3f}",
            )
            for row in rows
        ),
    )
    ess = min(row["ess_ratio_median"] for row in rows if row["staleness"] == 0)
    return f"""## A language model, trained

A Llama of 30 M parameters, warmed up there on `arithmetic`, then 60 updates of 32 x 8 responses in bfloat16 at
learning rate 1e-5; eight cells shared the GPU. One seed: this shows that it works, not which method is better.

{table}

At lag 0 the ESS is {ess:.3f}: sampler and learner agree in bfloat16."""


def _not_measured(day: dict[str, dict[str, Any]]) -> str:
    cut = [f"`{name}`" for name, facts in day.items() if facts["status"] != "ok" and name not in _PARTLY]
    return f"""## Not measured

- Begun and cut before there was a result: {", ".join(cut)}, and the two forms of `estimate` after it. Of
  `arithmetic-30M` the second seed is missing.
- vLLM, which was not installed there: in process, servers, CUDA IPC, NCCL, CUDA graphs.
- More than one GPU: `--shards`, `--jobs 0`, GPUs under Slurm or Ray, verl, FSDP.
- Models above 1 B parameters, a vocabulary of 150,000, responses above 2,048 tokens."""


_PARTLY = ("thousand", "arithmetic-30M")
"""Cut, with results that are shown."""


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Writes `docs/benchmarks/gpu.md` from what `tests/gpu/day.py` brought home: `python tools/gpu_page.py`."""

from __future__ import annotations

import json
import math
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


def _head(day: dict[str, dict[str, Any]]) -> str:
    facts = day["updates"]
    versions, trl = facts["versions"], day["trl-1"]["result"]["trl"]
    return f"""# On a GPU

{facts["date"][:10]}; one {facts["gpu"]} ({facts["gpu_gib"]} GiB), {facts["cores"]} cores, Python {facts["python"]},
torch {versions["torch"]} (CUDA {facts["cuda"]}), transformers {versions["transformers"]}, TRL {trl}.
One session of a quarter of an hour, the first of this suite on a GPU: [`tests/gpu/day.py`](../gpu.md), cut where
the time was used up. Nothing was repeated on a second machine. This page is written by `tools/gpu_page.py` from
the [recorded results](gpu/{DATA.name}), whose `commit` is only what git said in a copied checkout: what ran is
149d993f."""


def _equal(day: dict[str, dict[str, Any]]) -> str:
    updates, stack, clock = day["updates"]["result"], day["equality"]["result"], day["clock"]["result"]
    exact, lags = day["exactness"]["result"], len(day["regimes"]["result"])
    whole, parts = day["trl-1"]["result"], day["trl-4"]["result"]
    distinct = len(set(updates["errors"].values()))
    language = day["doctor"]["result"]["language model"].removeprefix("ok: ").replace("log-probabilities ", "")
    same = "the same bits" if all(day["determinism"]["result"]["bit_identical"].values()) else "other bits"
    rows = (
        (
            f"gradient of one stale batch, {updates['checked']} methods, against the CPU",
            f"relative error (l2) at most {bound(updates['largest_error'])}",
        ),
        (f"realized lags, {lags} regimes (`async` by its virtual clock), against the CPU", "equal, every update"),
        (
            "`async` in real time, sampler process and learner on one GPU, k = 3",
            f"{clock['updates']} updates, lag at most {clock['lag_max']:.0f}",
        ),
        (
            "log-probabilities, sampler against learner at lag 0, tiny policy",
            f"within {bound(day['sampler']['result']['largest_error'])} nats",
        ),
        ("the same for a Llama of 1 M parameters (`doctor --gpu`)", language),
        ("one cell of `vcpo`, 6 updates, twice; and resumed half-way", f"{same}; {same}"),
        (
            f"gradient norms of stacks, 4 updates, {len(stack['differences'])} methods, against cells alone on the CPU",
            f"relative difference at most {bound(stack['largest_difference'])}",
        ),
        (
            f"gradients inside TRL's `GRPOTrainer`, {whole['checked']} expressions, against an oracle",
            f"within {bound(whole['largest_error'])} whole, {bound(parts['largest_error'])} in four micro-batches",
        ),
        (
            "score norms, float32 against float64",
            f"within {bound(exact['float32 against float64'])} of a squared norm",
        ),
        (
            "score norms, bfloat16, against one backward pass per trajectory",
            f"within {bound(exact['bfloat16 against one by one'])} of a squared norm",
        ),
    )
    return f"""## The same numbers as on a CPU

{_table(("what", "result"), rows)}

The same bits twice are what this cell gave, not a promise: a GPU may add in any order. The first row has the tiny
policy and 4 x 4 responses at a lag of at most 2. Only {distinct} of its errors are distinct: there most methods clip
nothing, so bounds and masks were hardly tried."""


def _stacks(day: dict[str, dict[str, Any]]) -> str:
    rows = day["sizes"]["result"]["stacks"]
    thousand, workers = day["thousand"]["result"], day["thousand"]["cores"]
    each = 1e3 * workers * thousand["training_seconds"] / thousand["ended"] / 400
    by_itself, minutes = rows[2]["ms_per_cell"], 1000 * 400 * each / workers / 6e4
    alone = 1e3 * day["sampling"]["result"]["samplers"][0]["seconds_per_update"]
    table = _table(
        ("cells", "ms per update of a cell", "ms per update of the stack", "times a stack of one", "GiB"),
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

`chain`, 16 prompts x 8 responses, `tis`, one process, no evaluation. Fastest of five updates, the first of a run:

{table}

Between 128 cells, what `--stack auto` takes on a GPU, and 256 the time of a cell does not change. A stack of one is not
a cell with `--stack off`, which was not timed at this size. With twice the rows that took {alone:.0f} ms
([below](#sampling-in-pytorch)); an idle core of [another machine](updates.md) takes 35 ms for these rows. Stacks of
`vcpo`, whose score norms go another way, were not timed.

**A thousand runs in a minute is not reached.** {workers} processes with stacks of 63 were to make
400 updates of each of 1,000 cells, and were stopped twice, after {thousand["wall_seconds"]:.0f} s in all, starts
included. Cells of a stack end together, so only {thousand["ended"]} had ended. By their own records these took
{each:.1f} ms per update in each of the {workers} processes, against {by_itself:.2f} ms in one stack of 64 with the
GPU to itself: so {workers} processes do about {workers * by_itself / each:.1f} times the work of one. At that rate
1,000 cells take about {minutes:.0f} minutes and the starts."""


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
    times, memory = (_range([_norms_cost(day, size)[n] for size in SIZES], 2 - (n == 0)) for n in (0, 1))
    header = ("one step of 8 trajectories", *(f"{size.replace('-', ', ')} tokens" for size in SIZES))
    return f"""## Score norms

Llamas with random weights, bfloat16, AdamW, prompts of 64 tokens; no sampling, no checkpointing, no micro-batches.
Each entry: time relative to the plain step, and in brackets milliseconds (fastest of three) and peak memory.

{_table(header, lines)}

A step with the exact norms that `vcpo` needs takes {times} as long as a plain one, relatively less for longer
responses, and {memory} its memory. Book-keeping is the fastest of the three ways measured, and needs the most
memory. The [published overhead](../studies/scorecard/README.md#13-overhead-of-opob) is 19% of time and 14% of
memory."""


def _estimate(day: dict[str, dict[str, Any]]) -> str:
    table = _table(
        ("model", "GiB, plain", "with score norms", "estimated", "s, plain", "with score norms", "estimated"),
        (
            (
                row["size"].replace("-", ", ") + " tokens",
                f"{row['gib']:.1f}",
                f"{row['norms_gib']:.1f}",
                f"{row['estimated_gib']:.1f}",
                f"{row['seconds']:.3f}",
                f"{row['norms_seconds']:.3f}",
                f"{row['estimated_seconds']:.3f}",
            )
            for row in against_estimate(day)
        ),
    )
    torch, generate = layer_milliseconds(day).values()
    inside = layer_milliseconds(day, in_update=True)
    return f"""## The estimate of `--dry-run`

[Its arithmetic](../tasks.md#memory-and-time-an-estimate) against the same steps. Time: the measured step includes
AdamW's; the estimate is three of its four passes (a plain step does not score) without the optimizer. Memory: both
have AdamW's moments; the estimate adds all gradients to all activations, which do not meet in full. Measured is
PyTorch's peak of allocated memory, without the CUDA context and what is fragmented.

{table}

Sampling probably waits for Python: a token takes {torch:.2f} ms per layer with `torch`, {generate:.2f} with
`generate`, head and prompt included, where responses cannot end. The estimate had assumed 0.4, and now has
{torch:.1f}. Inside an update, where responses can end, it is {inside["torch"]:.1f} with `torch` and
{inside["generate"]:.2f} with `generate`: **estimated sampling with `torch` may take twice as long**. Three cells of
Qwen2-1.5B were to check the sum of it all; none got to its end (below)."""


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
    row, other = (
        next(r for r in day["sampling"]["result"]["samplers"] if r["sampler"] == n) for n in ("torch", "generate")
    )
    generate = 1e3 * other["seconds_per_update"]
    alone = 1e3 * row["rows"] * row["length"] / row["tokens_per_second"]
    inside = 1e3 * row["share_of_update"] * row["seconds_per_update"]
    return f"""## Sampling in PyTorch

32 prompts x 8 responses, bfloat16 for the Llama. Tokens per second are of responses that cannot end; in the update
they can:

{table}

In an update `torch`, the default, samples for {inside:.0f} ms, and {alone:.0f} ms where nothing ends. The cause is not
known. An update with `--sampler generate` took {generate:.0f} ms, less than half."""


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
    seconds = _range([row["seconds_shared"] for row in rows], 1).removesuffix(" times")
    ess = min(row["ess_ratio_median"] for row in rows if row["staleness"] == 0)
    return f"""## A language model, trained

A Llama of 30 M parameters, warmed up there on `arithmetic`, then 60 updates of 32 x 8 responses in bfloat16 at
learning rate 1e-5; eight cells shared the GPU. One seed, 256 samples (standard error 0.03) and one start: it shows that
cells run to their end at the lag that was asked for, not that they learn, nor which method is better. The ESS is the
median of all 60 updates, and lag 32 is reached only after 32.

{table}

At lag 0 the ESS is {ess:.3f}: between PyTorch's sampler and learner, for short responses, bfloat16 costs no ESS. An
update took {seconds} s in each of eight cells at once."""


def _not_measured(day: dict[str, dict[str, Any]]) -> str:
    cut = [f"`{name}`" for name, facts in day.items() if facts["status"] != "ok" and name not in _PARTLY]
    return f"""## Not measured

- Begun and cut before there was a result: {", ".join(cut)}.
  The two forms of `estimate` after it were not begun, nor the second seed of `arithmetic-30M`.
- vLLM, which was not installed there: in process, servers, CUDA IPC, NCCL, CUDA graphs.
- More than one GPU: `--shards`, `--jobs 0`, GPUs under Slurm or Ray, verl, FSDP.
- Whole cells above 30 M parameters or 34 tokens: at 100 M and 1 B only single steps with random weights. Released
  weights. Any family but Llama. LoRA, checkpointing and micro-batches. A language model in any regime but `fifo`.
- Any other GPU. Stacks of `vcpo`. Seconds and memory of a whole cell against the estimate."""


_PARTLY = ("thousand", "arithmetic-30M")
"""Cut, with results that are shown."""


def bound(value: float) -> str:
    """A largest error, rounded up to two digits."""
    exponent = math.floor(math.log10(value))
    return f"{math.ceil(value / 10 ** (exponent - 1) - 1e-9) / 10:.1f}e{exponent}"


def _range(values: Sequence[float], digits: int) -> str:
    return f"{min(values):.{digits}f} to {max(values):.{digits}f} times"


def _norms_cost(day: dict[str, dict[str, Any]], size: str) -> tuple[float, float]:
    """Time and memory of a step with norms, relative to a plain one."""
    ways = {row["way"]: row for row in day[f"norms-{size}"]["result"]["ways"]}
    plain, own = ways["plain"], ways["bookkeeping"]
    return own["seconds"] / plain["seconds"], own["peak_gib"] / plain["peak_gib"]


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""The parts of the page about a GPU that are of language models, and what was not measured."""

from __future__ import annotations

from typing import Any

from .numbers import PARTLY, SIZES, WAYS, against_estimate, in_range, layer_milliseconds, norms_cost, table_of


def norms(day: dict[str, dict[str, Any]]) -> str:
    """What score norms cost."""
    lines = []
    for way, text in WAYS.items():
        cells = []
        for size in SIZES:
            (row,) = (one for one in day[f"norms-{size}"]["result"]["ways"] if one["way"] == way)
            cells.append(f"{row['ratio']:.2f} ({1e3 * row['seconds']:.0f} ms, {row['peak_gib']:.1f} GiB)")
        lines.append((text, *cells))
    times, memory = (in_range([norms_cost(day, size)[n] for size in SIZES], 2 - (n == 0)) for n in (0, 1))
    header = ("one step of 8 trajectories", *(f"{size.replace('-', ', ')} tokens" for size in SIZES))
    return f"""## Score norms

Llamas with random weights, bfloat16, AdamW, prompts of 64 tokens; no sampling, no checkpointing, no micro-batches.
Each entry: time relative to the plain step, and in brackets milliseconds (fastest of three) and peak memory.

{table_of(header, lines)}

A step with the exact norms that `vcpo` needs takes {times} as long as a plain one, relatively less for longer
responses, and {memory} its memory. Book-keeping is the fastest of the three ways measured, and needs the most
memory. The [published overhead](../studies/scorecard/README.md#13-overhead-of-opob) is 19% of time and 14% of
memory."""


def estimate(day: dict[str, dict[str, Any]]) -> str:
    """The estimate of `--dry-run` beside what was measured."""
    table = table_of(
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


def samplers(day: dict[str, dict[str, Any]]) -> str:
    """Tokens per second."""
    names = {
        "built-in": "tiny policy, `chain`",
        "torch": "`llama(30M)`, `torch`",
        "generate": "`llama(30M)`, `generate`",
    }
    table = table_of(
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


def training(day: dict[str, dict[str, Any]]) -> str:
    """A language model, trained."""
    rows = sorted(day["arithmetic-30M"]["result"]["cells"], key=lambda row: (row["method"], row["staleness"]))
    table = table_of(
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
    seconds = in_range([row["seconds_shared"] for row in rows], 1).removesuffix(" times")
    ess = min(row["ess_ratio_median"] for row in rows if row["staleness"] == 0)
    return f"""## A language model, trained

A Llama of 30 M parameters, warmed up there on `arithmetic`, then 60 updates of 32 x 8 responses in bfloat16 at
learning rate 1e-5; eight cells shared the GPU. One seed, 256 samples (standard error 0.03) and one start: it shows that
cells run to their end at the lag that was asked for, not that they learn, nor which method is better. The ESS is the
median of all 60 updates, and lag 32 is reached only after 32.

{table}

At lag 0 the ESS is {ess:.3f}: between PyTorch's sampler and learner, for short responses, bfloat16 costs no ESS. An
update took {seconds} s in each of eight cells at once."""


def not_measured(day: dict[str, dict[str, Any]]) -> str:
    """What was cut, and what was never tried."""
    cut = [f"`{name}`" for name, facts in day.items() if facts["status"] != "ok" and name not in PARTLY]
    return f"""## Not measured

- Begun and cut before there was a result: {", ".join(cut)}.
  The two forms of `estimate` after it were not begun, nor the second seed of `arithmetic-30M`.
- vLLM, which was not installed there: in process, servers, CUDA IPC, NCCL, CUDA graphs.
- More than one GPU: `--shards`, `--jobs 0`, GPUs under Slurm or Ray, verl, FSDP.
- Whole cells above 30 M parameters or 34 tokens: at 100 M and 1 B only single steps with random weights. Released
  weights. Any family but Llama. LoRA, checkpointing and micro-batches. A language model in any regime but `fifo`.
- Any other GPU. Stacks of `vcpo`. Seconds and memory of a whole cell against the estimate."""

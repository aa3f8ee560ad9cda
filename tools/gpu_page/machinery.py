"""The parts of the page about a GPU that are of the machinery: where, equality, stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .numbers import DATA, bound, table_of


def head(day: dict[str, dict[str, Any]]) -> str:
    """Where and when it was measured."""
    facts = day["updates"]
    versions, trl = facts["versions"], day["trl-1"]["result"]["trl"]
    return f"""# On a GPU

{facts["date"][:10]}; one {facts["gpu"]} ({facts["gpu_gib"]} GiB), {facts["cores"]} cores, Python {facts["python"]},
torch {versions["torch"]} (CUDA {facts["cuda"]}), transformers {versions["transformers"]}, TRL {trl}.
One session of a quarter of an hour, the first of this suite on a GPU: [`tests/gpu/day.py`](../gpu.md), cut where
the time was used up. Nothing was repeated on a second machine. This page is written by `tools/gpu_page/page.py` from
the [recorded results](gpu/{DATA.name}), whose `commit` is only what git said in a copied checkout: what ran is
149d993f."""


def equal(day: dict[str, dict[str, Any]]) -> str:
    """What a GPU computes beside what a CPU does."""
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

{table_of(("what", "result"), rows)}

The same bits twice are what this cell gave, not a promise: a GPU may add in any order. The first row has the tiny
policy and 4 x 4 responses at a lag of at most 2. Only {distinct} of its errors are distinct: there most methods clip
nothing, so bounds and masks were hardly tried."""


def stacks(day: dict[str, dict[str, Any]]) -> str:
    """Many cells as one program."""
    rows = day["sizes"]["result"]["stacks"]
    thousand, workers = day["thousand"]["result"], day["thousand"]["cores"]
    each = 1e3 * workers * thousand["training_seconds"] / thousand["ended"] / 400
    by_itself, minutes = rows[2]["ms_per_cell"], 1000 * 400 * each / workers / 6e4
    alone = 1e3 * day["sampling"]["result"]["samplers"][0]["seconds_per_update"]
    table = table_of(
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

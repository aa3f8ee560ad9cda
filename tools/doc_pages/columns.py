"""The generated part of `docs/columns.md`: every column of every recorded table, from `vcpo_bench.records`."""

from doc_pages.marked import with_table
from vcpo_bench import records
from vcpo_bench.records import Column
from vcpo_bench.records.steps import STEPS

TABLES: dict[str, tuple[str, tuple[Column, ...]]] = {
    "cells/KEY/steps.parquet": ("One row per optimizer update.", STEPS),
    "cells/KEY/evals.parquet": ("One row per evaluation on the held-out prompts.", records.EVALS),
    "cells/KEY/lags.parquet": ("One row per update and realized lag.", records.LAGS),
    "cells/KEY/samples.parquet": (
        "One row per consumed trajectory, of every tenth update or (`full`) all.",
        records.SAMPLES,
    ),
    "cells/KEY/episodes.parquet": ("The first held-out prompts with what the policy sampled.", records.EPISODES),
    "cells/KEY/events.parquet": ("One row per event of an asynchronous sampler.", records.EVENTS),
    "probes/KEY.parquet": (
        "What `vcpo-bench lab probe` measured; see [probe and fork](probe_and_fork.md).",
        records.PROBES,
    ),
    "scores/KEY.parquet": ("What `vcpo-bench lab eval` measured; see [lm-eval](lm_eval.md).", records.LM_EVAL_SCORES),
}


def page() -> str:
    """The page with its tables made anew."""
    sections = [_section(file, summary, columns) for file, (summary, columns) in TABLES.items()]
    return with_table("docs/columns.md", "\n".join(sections))


def _section(file: str, summary: str, columns: tuple[Column, ...]) -> str:
    rows = "".join(
        f"| `{one.name}` | {one.kind} | {one.unit} | {one.level} | {one.meaning.replace('|', chr(92) + '|')} |\n"
        for one in columns
    )
    return f"## {file}\n\n{summary}\n\n| column | type | unit | level | meaning |\n|---|---|---|---|---|\n{rows}"

"""Rewrite recorded_columns.json: run this only together with a new `RULES_VERSION`, or to add columns."""

import json
from pathlib import Path

from vcpo_bench import records
from vcpo_bench.bench.cells.parquet_table import arrow_schema
from vcpo_bench.records import Column
from vcpo_bench.records.steps import STEPS

LEVELS = ("full", "diagnostics", "basic")
TABLES: dict[str, tuple[Column, ...]] = {
    "steps": STEPS,
    "evals": records.EVALS,
    "lags": records.LAGS,
    "samples": records.SAMPLES,
    "episodes": records.EPISODES,
    "events": records.EVENTS,
    "probes": records.PROBES,
    "scores": records.LM_EVAL_SCORES,
}


def written(table: str) -> list[list[str]]:
    """Every column as Parquet stores it, in order: name, lowest level that writes it, storage type, unit, meaning."""
    lowest = {name: level for level in LEVELS for name in arrow_schema(TABLES[table], level).names}
    return [
        [
            field.name,
            lowest[field.name],
            str(field.type),
            *(field.metadata[key].decode() for key in (b"unit", b"meaning")),
        ]
        for field in arrow_schema(TABLES[table], "full")
    ]


if __name__ == "__main__":
    tables = ",\n".join(
        f' "{table}": [\n' + ",\n".join(f"  {json.dumps(column)}" for column in written(table)) + "\n ]"
        for table in TABLES
    )
    content = f'{{\n "rules_version": "{records.RULES_VERSION}",\n{tables}\n}}\n'
    Path(__file__).with_name("recorded_columns.json").write_text(content)

"""The scores of a cell on disk: `scores/<key>.parquet` of the results folder, beside the cells and never in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from vcpo_bench.bench.cells.parquet_table import arrow_schema
from vcpo_bench.bench.cells.results_folder import WRITER
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.claims import Claim
from vcpo_bench.files.folders import made, refuse_link
from vcpo_bench.files.parquet import read_parquet, write_parquet
from vcpo_bench.records import LM_EVAL_SCORES, SCORES_FOLDER

Score = dict[str, Any]
"""A row of `records.LM_EVAL_SCORES`."""


def write_scores(results: Path, key: str, scores: Sequence[Score]) -> Path:
    """Add the scores of a cell, replacing those of the same checkpoint and task. The file is replaced atomically.

    Raises:
        UsageError: The file there cannot be read, or a link stands in for its folder.
    """
    folder = made(results, SCORES_FOLDER)
    path = folder / f"{key}.parquet"
    schema = arrow_schema(LM_EVAL_SCORES, "basic")
    new = {(score["step"], score["task"]) for score in scores}
    refuse_link(folder / WRITER)
    with Claim(folder / WRITER):
        try:
            old = list(read_parquet(path).to_pylist()) if path.exists() else []
        except (OSError, DamagedResultError) as error:
            raise UsageError(f"{path} cannot be read; move it away and score again") from error
        rows = [row for row in old if (row["step"], row["task"]) not in new] + list(scores)
        rows.sort(key=lambda row: (row["step"], row["task"], row["metric"], row["filter"]))
        write_parquet(path, pa.Table.from_pylist(rows, schema=schema), below=results)
    return path

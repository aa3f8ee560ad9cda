"""Small Parquet files of a stranger that stand for tables of gigabytes: refused before their pages are read."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files import parquet
from vcpo_bench.files.checksums import write_sealed
from vcpo_bench.files.parquet import read_parquet

ROWS, LENGTH = 100, 10_000
TEXT = "a" * LENGTH
ONE = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array([TEXT]))
ZEROS = pa.ListArray.from_arrays(pa.array([0, ROWS * LENGTH], pa.int32()), pa.repeat(pa.scalar(0.0), ROWS * LENGTH))

BOMBS: dict[str, tuple[pa.Array, dict[str, object], str]] = {
    "one row with a long list": (ZEROS, {}, f"has {ROWS * LENGTH} values in a file of"),
    "rows that share a text": (ONE, {}, f"stands for {ROWS * LENGTH} bytes of text in a file of"),
    "the same, said by the pages alone": (ONE, {"store_schema": False}, f"stands for {ROWS * LENGTH} bytes of text"),
    "texts that begin alike": (
        pa.array([TEXT] * ROWS),
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
        "shortens its texts in 'x' as no record does",
    ),
    "pages of zeros": (pa.array([TEXT] * ROWS), {"use_dictionary": False}, "bytes in a file of"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    values, how, said = BOMBS[name]
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"x": values}), path, compression="zstd", **how)
    assert path.stat().st_size < ROWS * LENGTH / 100, "it is no bomb"
    monkeypatch.setattr(parquet, "MOST_BYTES", ROWS * LENGTH // 2)
    monkeypatch.setattr(pq.ParquetFile, "read", _unless_cheap)
    with pytest.raises(DamagedResultError, match=said):
        read_parquet(path)


def _unless_cheap(self: pq.ParquetFile, **how: object) -> pa.Table:
    """The original, which may be called only to read places in a list of texts."""
    table = _READ(self, **how)
    assert table.nbytes < ROWS * LENGTH / 2, "it was read"
    return table


_READ = pq.ParquetFile.read


@pytest.mark.parametrize(("texts", "most"), [(["a", "b", None] * 50, 3000), ([TEXT, "", None], 2 * LENGTH)])
def test_texts_that_rows_share_are_read_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str | None], most: int
) -> None:
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"x": pa.array(texts), "step": range(len(texts))}), path, store_schema=False)
    monkeypatch.setattr(parquet, "MOST_BYTES", most)
    monkeypatch.setattr(parquet, "MOST_TIMES", 1)
    assert parquet._check_size(pq.read_metadata(path), 1, None, None) == ["x"]
    table = read_parquet(path)
    assert (table["x"].type, table["x"].to_pylist()) == (pa.string(), texts)


def test_no_column_becomes_the_index_by_what_pandas_says_of_it(
    tmp_path: Path, make_results: Callable[..., Path]
) -> None:
    """Metadata of a table can name a column its index: rows of several cells then have the same labels."""
    folder = make_results(tmp_path / "gift", methods=("clip",), lags=(1,), seeds=(0, 1), steps=20, controls=False)
    whole = load(folder).evals
    for cell in (folder / "cells").iterdir():
        table = pq.read_table(cell / "evals.parquet")
        frame = table.to_pandas().set_index("step")
        hidden = table.replace_schema_metadata(pa.Table.from_pandas(frame).schema.metadata)
        pq.write_table(hidden, cell / "evals.parquet")
        write_sealed(cell / "cell.json", json.loads((cell / "cell.json").read_text()))
        assert pd.read_parquet(cell / "evals.parquet").index.name == "step"
    pd.testing.assert_frame_equal(load(folder).evals, whole)

"""Whether a table is there from its first byte to its last, also where it is as small as one can be."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vcpo_bench.files.parquet import is_whole


@pytest.fixture
def smallest(tmp_path: Path) -> Path:
    """A table without rows: nothing lies between the first four bytes and the footer."""
    path = tmp_path / "empty.parquet"
    pq.ParquetWriter(path, pa.schema({"step": pa.int64()})).close()
    return path


def test_a_table_without_rows_is_whole(smallest: Path) -> None:
    content = smallest.read_bytes()
    assert int.from_bytes(content[-8:-4], "little") + 12 == len(content)
    assert is_whole(smallest)


@pytest.mark.parametrize("cut", [slice(1, None), slice(None, -1), slice(0, 4), slice(0, 7), slice(0, 0)])
def test_any_missing_end_is_noticed(smallest: Path, cut: slice) -> None:
    smallest.write_bytes(smallest.read_bytes()[cut])
    assert not is_whole(smallest)


def test_a_footer_longer_than_the_file_is_noticed(smallest: Path) -> None:
    content = smallest.read_bytes()
    smallest.write_bytes(content[:4] + content[5:])
    assert not is_whole(smallest)

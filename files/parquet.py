"""Parquet tables, read only if they are what was written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.atomic import replacing
from vcpo_bench.files.checksums import Seal, verified_bytes
from vcpo_bench.files.regular import open_regular

_NUMBER_BYTES = 8
MOST_BYTES, MOST_TIMES = 2**28, 100
"""A table that would take more memory than this, and more than this many times its file, is no record: a few bytes can
stand for a billion equal numbers."""


def read_parquet(path: Path, seal: Seal | None = None, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a table. Where its pages have checksums of their own, these are verified as well.

    Args:
        path: The file.
        seal: Checksums of its folder, from `checksums.seal_of`; None: it has none.
        columns: Which to read; None: all.

    Raises:
        DamagedResultError: It is missing, does not match a checksum, is no Parquet table, or lacks a column.
        OSError: The disk cannot be read at the moment.
    """
    table = read_present(path, seal, columns)
    if missing := set(columns or ()) - set(table.column_names):
        raise DamagedResultError(f"lacks the column {min(missing)!r}", path)
    return table


def read_present(
    path: Path, seal: Seal | None = None, columns: Sequence[str] | None = None, most_rows: int | None = None
) -> pa.Table:
    """Like `read_parquet`, without the columns that the table lacks, and if it has no more than `most_rows` rows."""
    content = verified_bytes(path, seal)
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        large = _check_size(file.metadata, len(content), columns, most_rows)
        if large:
            file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True, read_dictionary=large)
        table = file.read(columns=None if columns is None else list(columns), use_threads=False)
        return _with_plain_texts(table, large, len(content))
    except DamagedResultError as error:
        raise DamagedResultError(error.what, path) from error
    except MemoryError:  # that of Arrow is an ArrowException too, and says nothing about the file
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedResultError(f"cannot be read ({reason})", path) from error


def _check_size(found: pq.FileMetaData, size: int, columns: Sequence[str] | None, most_rows: int | None) -> list[str]:
    """Refuse a table by its footer, before anything else of it is read.

    Returns:
        Columns of texts that may take far more memory than their pages, because rows can share a text.

    Raises:
        DamagedResultError: It has too many rows or values.
    """
    if most_rows is not None and found.num_rows > most_rows:
        raise DamagedResultError(f"has {found.num_rows} rows where its cell can have made {most_rows}")
    most, values, pages, texts = max(MOST_BYTES, MOST_TIMES * size), 0, 0, dict[str, int]()
    for group in range(found.num_row_groups):
        row_group = found.row_group(group)
        for place in range(found.num_columns):
            chunk = row_group.column(place)
            name = chunk.path_in_schema.partition(".")[0]
            if columns is not None and name not in columns:
                continue
            values, pages = values + chunk.num_values, pages + chunk.total_uncompressed_size
            if chunk.physical_type == "BYTE_ARRAY":
                texts[name] = texts.get(name, 0) + chunk.num_values * chunk.total_uncompressed_size
                if "DELTA_BYTE_ARRAY" in chunk.encodings and texts[name] > most:
                    raise DamagedResultError(f"shortens its texts in {name!r} as no record does")
    if values * _NUMBER_BYTES > most:
        raise DamagedResultError(f"has {values} values in a file of {size} bytes, which is no record")
    if pages > most:
        raise DamagedResultError(f"stands for {pages} bytes in a file of {size}, which is no record")
    return [name for name, needed in texts.items() if needed > most]


def _with_plain_texts(table: pa.Table, names: Sequence[str], size: int) -> pa.Table:
    """The table, with texts where these columns hold places in a list of texts.

    Raises:
        DamagedResultError: The texts would take too much memory.
    """
    for name in names:
        column = table.column(name)
        if not pa.types.is_dictionary(column.type):
            continue
        needed = sum(_bytes_of_text(one) for one in column.chunks)
        if needed > max(MOST_BYTES, MOST_TIMES * size):
            raise DamagedResultError(f"stands for {needed} bytes of text in a file of {size}, which is no record")
        table = table.set_column(table.schema.get_field_index(name), name, column.cast(column.type.value_type))
    return table


def write_parquet(path: Path, table: pa.Table, typed: bool = False, below: Path | None = None) -> None:
    """Replace a table that stands alone, outside the folder of a cell; its pages get checksums of their own.

    `typed` and `below` are those of `files.atomic.replacing`.

    Raises:
        OSError: The file cannot be written.
    """
    with replacing(path, typed, below) as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)


def is_whole(path: Path) -> bool:
    """Whether a file begins and ends as a Parquet file does; the data between are not read.

    Raises:
        DamagedResultError: It is a link, a folder, a pipe or a device.
        OSError: The disk cannot be read at the moment.
    """
    with open_regular(path) as file:
        head = file.read(4)
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        tail = file.read(8)
    return head == tail[4:] == b"PAR1" and int.from_bytes(tail[:4], "little") + 12 <= size


def _bytes_of_text(chunk: pa.DictionaryArray) -> int:
    lengths = pc.call_function("binary_length", [chunk.dictionary]).take(chunk.indices)
    return pc.call_function("sum", [lengths]).as_py() or 0

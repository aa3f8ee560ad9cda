"""TensorBoard event files, read without tensorboard: every scalar, not a sample of 10,000.

A file is a sequence of records (length, checksum, data, checksum); the data is a protobuf `Event`, of which the step
and the scalar summaries are read. A truncated or damaged file gives what stands before the damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from vcpo_bench.analysis.logs.rows import LogRows

_HEADER = struct.Struct("<QI")
_LARGEST_RECORD = 1 << 28
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EVENT_STEP, _EVENT_SUMMARY = 2, 5
_VALUE_TAG, _VALUE_SIMPLE, _VALUE_TENSOR = 1, 2, 8
_TENSOR_CONTENT, _TENSOR_FLOATS = 4, 5

Field = tuple[int, int, int | bytes]


def read_tensorboard(path: Path, rows: LogRows) -> None:
    """Read one event file; the files of a folder are read in the order of their names."""
    whole = True
    count = 0
    data = path.read_bytes()
    position = 0
    while position < len(data):
        event, position = _next_record(data, position)
        if event is None:
            whole = False
            break
        try:
            step, scalars = _event(event)
        except (ValueError, IndexError, struct.error):
            rows.add_bad_line(path.name)
            continue
        if scalars:
            count += 1
            rows.add(scalars, path.parent.name or path.name, float(step), "step")
    if not whole:
        rows.notes.append(
            f"{path.name} is damaged after {position:,} of {len(data):,} bytes; {count} events before that were read"
        )


def _next_record(data: bytes, position: int) -> tuple[bytes | None, int]:
    if position + _HEADER.size > len(data):
        return None, position
    length, _ = _HEADER.unpack_from(data, position)
    begin = position + _HEADER.size
    if length > _LARGEST_RECORD or begin + length + 4 > len(data):
        return None, position
    return data[begin : begin + length], begin + length + 4


def _event(data: bytes) -> tuple[int, dict[str, float]]:
    step = 0
    scalars: dict[str, float] = {}
    for number, _, value in _fields(data):
        if number == _EVENT_STEP and isinstance(value, int):
            step = value if value < 1 << 63 else value - (1 << 64)
        elif number == _EVENT_SUMMARY and isinstance(value, bytes):
            for _, _, entry in _fields(value):
                if isinstance(entry, bytes):
                    _take_scalar(entry, scalars)
    return step, scalars


def _take_scalar(entry: bytes, scalars: dict[str, float]) -> None:
    tag, found = "", None
    for number, kind, value in _fields(entry):
        if number == _VALUE_TAG and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif number == _VALUE_SIMPLE and kind == _FIXED32 and isinstance(value, bytes):
            (found,) = struct.unpack("<f", value)
        elif number == _VALUE_TENSOR and isinstance(value, bytes):
            found = _tensor(value)
    if tag and found is not None:
        scalars[tag] = found


def _tensor(data: bytes) -> float | None:
    """The number of a scalar float32 tensor; None for anything else."""
    for number, _, value in _fields(data):
        if number in (_TENSOR_CONTENT, _TENSOR_FLOATS) and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
    return None


def _fields(data: bytes) -> Iterator[Field]:
    """Fields of a protobuf message: number, wire type, value."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if position + size > len(data):
            raise ValueError("field beyond the end")
        yield number, kind, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 63:
            raise ValueError("number too long")

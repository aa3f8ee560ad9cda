"""Sealed files: whatever bit is flipped, wherever, it is noticed; what an earlier version wrote is read as it is."""

import json
import os
import random
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vcpo_bench.errors import DamagedResultError
from vcpo_bench.files.checksums import read_sealed, seal_of, verified_bytes, verify_sealed, verify_sizes, write_sealed
from vcpo_bench.files.parquet import is_whole


def complaint(path: Path) -> str:
    try:
        verify_sealed(path)
    except DamagedResultError as error:
        return str(error)
    return ""


STRIDE = 1 if os.environ.get("HARDENING") == "long" else 11
"""Every bit, or one of eleven: each position in a byte, at least in every eleventh byte."""


def sealed(folder: Path) -> Path:
    (folder / "table.bin").write_bytes(random.Random(0).randbytes(300))
    (folder / "empty").touch()
    path = folder / "facts.json"
    # a text that looks like a seal, and numbers and escapes with more than one spelling
    values = {"a": ' \n "checksum": "00000000"', "b": {"checksum": "00000000"}, "c": 1e-05, "d": "é", "e": [True, None]}
    write_sealed(path, values)
    return path


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("name", ["facts.json", "table.bin"])
def test_every_single_flipped_bit_is_noticed(tmp_path: Path, name: str) -> None:
    path = sealed(tmp_path)
    victim = tmp_path / name
    assert verify_sealed(path)["c"] == 1e-05
    bits = range(0, 8 * victim.stat().st_size, STRIDE)
    assert len(bits) > 200
    said = set()
    for bit in bits:
        flip(victim, bit)
        said.add(complaint(path))
        flip(victim, bit)
    assert all(line.startswith(str(victim)) for line in said)
    verify_sealed(path)


@pytest.mark.parametrize("name", ["table.bin", "empty"])
def test_a_file_that_is_gone_or_of_another_length_is_noticed_without_reading_it(tmp_path: Path, name: str) -> None:
    path = sealed(tmp_path)
    seal = seal_of(read_sealed(path))
    assert seal is not None
    verify_sizes(tmp_path, seal)
    with (tmp_path / name).open("ab") as file:
        file.write(b"x")
    with pytest.raises(DamagedResultError, match="bytes instead of"):
        verify_sizes(tmp_path, seal)
    (tmp_path / name).unlink()
    with pytest.raises(DamagedResultError, match=f"{name} is missing"):
        verify_sizes(tmp_path, seal)


def test_what_is_read_is_what_was_verified(tmp_path: Path) -> None:
    seal = seal_of(read_sealed(sealed(tmp_path)))
    assert len(verified_bytes(tmp_path / "table.bin", seal)) == 300
    (tmp_path / "later").touch()
    with pytest.raises(DamagedResultError, match="not among the files"):
        verified_bytes(tmp_path / "later", seal)
    assert verified_bytes(tmp_path / "later", None) == b""
    with pytest.raises(DamagedResultError, match="is missing"):
        verified_bytes(tmp_path / "never", None)


def test_a_file_of_an_earlier_version_has_no_checksums(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(json.dumps({"a": 1}))
    assert read_sealed(tmp_path / "old.json") == {"a": 1}
    assert complaint(tmp_path / "old.json").endswith("old.json has no checksums")
    assert seal_of({"a": 1}) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", '"a"', "\udcff", "[" * 100_000])
def test_what_is_no_json_object_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(DamagedResultError, match=r"x\.json cannot be read"):
        read_sealed(path)


@pytest.mark.parametrize("name", ["../t.bin", "/t.bin", "..", ".", "", "a\\u0000b", "x" * 256, "a\\nb"])
def test_a_seal_over_what_is_no_name_here_is_refused(tmp_path: Path, name: str) -> None:
    path = sealed(tmp_path)
    text = path.read_text().replace('"table.bin"', f'"{name}"')
    assert text != path.read_text()
    blank = text.replace(json.loads(text)["checksum"], "00000000")
    path.write_text(text.replace(json.loads(text)["checksum"], f"{zlib.crc32(blank.encode()):08x}"))
    with pytest.raises(DamagedResultError, match="does not match its checksum"):
        read_sealed(path)


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


def test_half_a_surrogate_pair_is_damage_since_no_file_can_hold_it(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(r'{"reason": "\ud800"}')
    with pytest.raises(DamagedResultError, match="not JSON"):
        read_sealed(tmp_path / "facts.json")

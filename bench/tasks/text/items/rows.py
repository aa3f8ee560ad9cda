"""Rows of a data set from a local file or the hub, with a one-line error for what cannot be read."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from vcpo_bench.errors import UsageError

_ENDINGS = (".jsonl", ".parquet")

Row = Mapping[str, Any]


class HubSet(NamedTuple):
    """A split of a data set on the Hugging Face hub."""

    repository: str
    configuration: str
    split: str


class RowSource(NamedTuple):
    """Local files; without a training file, the hub."""

    train: Path | None
    held_out: Path | None

    def stamps(self) -> tuple[tuple[int, int], ...]:
        """Time of the last change and size of each file."""
        stats = [path.stat() for path in (self.train, self.held_out) if path]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


def resolve(task: str, data: str, test: str, sample: Path, on_hub: bool) -> RowSource:
    """Which files `data=` and `test=` name.

    Args:
        task: Name of the task.
        data: `hub`, `sample`, a file or a folder.
        test: File of held-out rows; may be empty.
        sample: The file that `sample` stands for.
        on_hub: Whether the task has a data set on the hub.

    Raises:
        UsageError: There is no such file, folder or data set, or the file has another ending.
    """
    if data == "hub":
        if not on_hub:
            raise UsageError(f"{task}: has no data set on the hub; give {task}(data=FILE.jsonl)")
        if test:
            raise UsageError(f"{task}(test={test}): the hub has a test split of its own; use test= with data=FILE")
        return RowSource(None, None)
    path = sample if data == "sample" else _at_home(data)
    held_out = _existing(task, "test", _at_home(test)) if test else None
    if path.is_dir():
        return RowSource(_inside(task, path, "train"), held_out or _inside(task, path, "test"))
    return RowSource(_existing(task, "data", path), held_out)


def _at_home(text: str) -> Path:
    return Path(os.path.expanduser(text))


def _inside(task: str, folder: Path, stem: str) -> Path:
    for ending in _ENDINGS:
        if (folder / f"{stem}{ending}").is_file():
            return folder / f"{stem}{ending}"
    raise UsageError(f"{task}(data={folder}): the folder holds no {stem}.jsonl or {stem}.parquet")


def _existing(task: str, key: str, path: Path) -> Path:
    if not path.is_file() or path.suffix not in _ENDINGS:
        problem = "is not a .jsonl or .parquet file" if path.is_file() else "does not exist"
        raise UsageError(f"{task}({key}={path}): {problem}; give a file, or data=sample for the small built-in sample")
    return path


def read_rows(path: Path, fields: tuple[str, ...]) -> list[Row]:
    """All rows of a .jsonl or .parquet file.

    Raises:
        UsageError: The file cannot be read, is empty, or a row lacks one of the fields.
    """
    rows = _parquet(path) if path.suffix == ".parquet" else _json_lines(path)
    if not rows:
        raise UsageError(f"{path}: contains no rows")
    for number, row in enumerate(rows, 1):
        missing = [field for field in fields if not isinstance(row.get(field), str)]
        if missing:
            raise UsageError(f"{path}: row {number} has no text in {missing[0]!r}; its fields: {', '.join(row)}")
    return rows


def _json_lines(path: Path) -> list[Row]:
    rows: list[Row] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}: line {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise UsageError(f"{path}: line {number} is not an object with named fields")
        rows.append(row)
    return rows


def _parquet(path: Path) -> list[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(f"{path}: cannot be read as parquet ({str(error).splitlines()[0]})") from error
    return rows


def read_hub(task: str, source: HubSet) -> list[Row]:
    """All rows of a split on the hub, through the optional package `datasets`.

    Raises:
        UsageError: The package is missing or the data set is neither on the hub nor in its cache.
    """
    remedy = f"give {task}(data=FILE.jsonl), or {task}(data=sample) for the small built-in sample"
    try:
        import datasets
    except ImportError as error:
        missing = "reading from the hub needs the package datasets (pip install datasets)"
        raise UsageError(f"{task}: {missing}; {remedy}") from error
    try:
        return list(datasets.load_dataset(source.repository, source.configuration, split=source.split))
    except Exception as error:  # whatever the network, the hub or the cache may raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(f"{task}: cannot load {source.repository} from the hub ({reason}); {remedy}") from error

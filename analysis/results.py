"""Read a results folder into tables. Damage is named, never a traceback; partial cells come only on request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vcpo_bench import records
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records.steps import STEPS

KEPT_TOGETHER = {
    "steps": 300,
    "prompts": 16,
    "responses": 8,
    "eval_every": 10,
    "start": "",
    "stop": "",
    "fork_step": 0,
    "weight_decay": 0.0,
    "model": "",
    "dtype": "float32",
    "lora": 0,
    "chat": True,
    "sampler": "torch",
    "max_response": 0,
    "device": "cpu",
}
"""Settings that no table keeps apart, and what a cell had that was recorded before there was a choice."""
PARTIAL = "partial"
"""`status` of a cell that is running or was interrupted."""

_IDENTITY = {"task", "method", "regime", "staleness", "lr", "seed", "steps"}
_FACTS = ("status", "reason", "error", "steps_done", "seconds", "rules_version", "method_version")
_COLUMNS: dict[str, tuple[records.Column, ...]] = {
    records.STEPS_FILE: STEPS,
    records.EVALS_FILE: records.EVALS,
    records.LAGS_FILE: records.LAGS,
    records.SAMPLES_FILE: records.SAMPLES,
    records.EPISODES_FILE: records.EPISODES,
    records.SCORES_FOLDER: records.SCORES,
}
_REQUIRED = {
    records.STEPS_FILE: ("step", "sampled_reward"),
    records.EVALS_FILE: ("step", "greedy_reward", "sampled_reward"),
    records.LAGS_FILE: ("step", "lag", "trajectories"),
    records.SAMPLES_FILE: ("step", "reward"),
    records.EPISODES_FILE: ("step", "text"),
    records.SCORES_FOLDER: ("step", "task", "metric", "filter", "value"),
    records.PROBES_FOLDER: tuple(column.name for column in records.PROBES),
}
"""Without these a table means nothing; any other column may be absent (an earlier version) and reads as empty."""
_NUMPY_KIND = {"int": "int64", "float": "float64", "bool": "bool", "str": "object"}


@dataclass
class Results:
    """The recorded facts of one or more results folders.

    Attributes:
        folders: Where the cells were read from.
        cells: One row per cell: `key`, every scalar of its configuration (`task`, `method`, `regime`,
            `staleness`, `lr`, `seed`, `steps`, `prompts`, `responses`, `record`, ...), `status`,
            `reason`, `error`, `steps_done`, `seconds`, `rules_version`, `method_version`, `control`,
            `partial`, `provenance` (a dict) and `path` (the folder that holds its tables).
        problems: Damaged or missing files, one sentence each. It grows while tables are read: they are read when
            asked.
        notes: What a reader must know before comparing, such as a mix of rules versions.

    In the tables below, values that are not finite (an overflowed norm or weight) are missing: NaN.
    """

    folders: list[Path]
    cells: pd.DataFrame
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per optimizer update (`records.steps.STEPS`) with the cell's `key` in front."""
        return self._table(records.STEPS_FILE)

    @cached_property
    def evals(self) -> pd.DataFrame:
        """One row per evaluation (`records.EVALS`) with the cell's `key` in front."""
        return self._table(records.EVALS_FILE)

    @cached_property
    def lags(self) -> pd.DataFrame:
        """Realized lags (`records.LAGS`) with the cell's `key` in front."""
        return self._table(records.LAGS_FILE)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row per trajectory (`records.SAMPLES`); empty where nothing above `basic` was recorded."""
        return self._table(records.SAMPLES_FILE, optional=True)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """Example episodes as text (`records.EPISODES`); empty where nothing above `basic` was recorded."""
        return self._table(records.EPISODES_FILE, optional=True)

    @cached_property
    def probes(self) -> pd.DataFrame:
        """What `vcpo-bench probe` measured on these cells (`records.PROBES`); empty if nothing."""
        known, tables = set(self.cells["key"]), []
        for file in sorted(
            path for folder in self.folders for path in (folder / records.PROBES_FOLDER).glob("*.parquet")
        ):
            try:
                table = _read_table(file, False, records.PROBES_FOLDER)
            except DamagedResultError as error:
                self.problems.append(str(error))
                continue
            if table is not None:
                tables.append(table.to_pandas())
        columns = [column.name for column in records.PROBES]
        found = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)
        return found[found["key"].isin(known)].reset_index(drop=True)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Scores of kept checkpoints by lm-eval (`records.SCORES`); `task` is lm-eval's, not the cell's."""
        keys: list[str] = []
        tables: list[pa.Table] = []
        for folder, key in product(self.folders, self.cells["key"]):
            try:
                table = _read_table(folder / records.SCORES_FOLDER / f"{key}.parquet", True, records.SCORES_FOLDER)
            except DamagedResultError as error:
                self.problems.append(str(error))
                continue
            if table is not None and key not in keys:
                keys.append(key)
                tables.append(table)
        return _concatenate(keys, tables, records.SCORES)

    def samples_by_cell(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The recorded trajectories of one cell after another: all of a large study at once may not fit in memory."""
        for key, path in zip(self.cells["key"], self.cells["path"], strict=True):
            file = Path(path) / records.SAMPLES_FILE
            try:
                table = _read_table(file, optional=True)
            except DamagedResultError as error:
                if str(error) not in self.problems:
                    self.problems.append(str(error))
                continue
            if table is not None and table.num_rows:
                yield str(key), _concatenate([str(key)], [table], records.SAMPLES).drop(columns="key")

    def select(self, keys: Iterable[str]) -> Results:
        """The same results restricted to some cells; tables already read are not read again."""
        wanted = set(keys)
        chosen = Results(
            self.folders, self.cells[self.cells["key"].isin(wanted)].reset_index(drop=True), self.problems, self.notes
        )
        for name in ("steps", "evals", "lags", "samples", "episodes", "scores"):
            if name in self.__dict__:
                table: pd.DataFrame = self.__dict__[name]
                chosen.__dict__[name] = table[table["key"].isin(wanted)].reset_index(drop=True)
        return chosen

    def _table(self, name: str, optional: bool = False) -> pd.DataFrame:
        keys: list[str] = []
        tables: list[pa.Table] = []
        for key, path, status in zip(self.cells["key"], self.cells["path"], self.cells["status"], strict=True):
            try:
                table = _read_table(Path(path) / name, optional=optional or status == "error")
            except DamagedResultError as error:
                self.problems.append(str(error))
                continue
            if table is not None:
                keys.append(key)
                tables.append(table)
        return _concatenate(keys, tables, _COLUMNS[name])


def load(folder: str | Path | Iterable[str | Path], include_partial: bool = False) -> Results:
    """Read the cells of one results folder, or of several that are pooled.

    Args:
        folder: A folder as `records` describes it, or several.
        include_partial: Also read running or interrupted cells, from their newest checkpoint; their `partial` is
            True and their `status` is `"partial"`.

    Raises:
        UsageError: A folder does not exist or holds no cells.
    """
    folders = [Path(folder)] if isinstance(folder, str | Path) else [Path(one) for one in folder]
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    for one in folders:
        rows += _read_folder(one, include_partial, problems)
    if not rows:
        reason = f": {problems[0]}" if problems else "; is it the folder given to `vcpo-bench run --out`?"
        raise UsageError(f"no finished cell in {', '.join(str(one) for one in folders)}{reason}")
    notes: list[str] = []
    cells = _drop_repeats(pd.DataFrame(rows), notes)
    return Results(folders, cells, problems, notes + _version_notes(cells))


def _read_folder(folder: Path, include_partial: bool, problems: list[str]) -> list[dict[str, Any]]:
    root = folder / records.CELLS
    if not root.is_dir():
        raise UsageError(f"{folder} is not a results folder: it has no {records.CELLS}/ inside")
    controls = _read_controls(folder, problems)
    rows = []
    for path in sorted(entry for entry in root.iterdir() if entry.is_dir()):
        partial = path.name.endswith(records.PARTIAL_SUFFIX)
        if (partial and not include_partial) or path.name.startswith("."):
            continue
        try:
            rows.append(_read_cell(path, partial, controls))
        except DamagedResultError as error:
            problems.append(str(error))
    return rows


def _read_controls(folder: Path, problems: list[str]) -> dict[str, bool]:
    path = folder / records.GRID_FILE
    if not path.exists():
        return {}
    try:
        grid = _read_json(path)
        return {key: bool(entry.get("control", False)) for key, entry in grid.get("cells", {}).items()}
    except (DamagedResultError, AttributeError):
        problems.append(f"{path} is damaged: which cells are controls is unknown; run the grid again to rewrite it")
        return {}


def _read_cell(path: Path, partial: bool, controls: dict[str, bool]) -> dict[str, Any]:
    tables = _newest_checkpoint(path) if partial else path
    candidates = [tables / records.CELL_FILE, path / records.CELL_FILE]
    cell_file = next((one for one in candidates if one.exists()), candidates[-1])
    cell = _read_json(cell_file)
    config = cell.get("config")
    if not isinstance(config, dict) or not _IDENTITY.issubset(config):
        raise DamagedResultError(f"{cell_file} has no usable 'config'; delete the cell's folder and run the grid again")
    if not partial and cell.get("status") not in ("completed", "nan", "stopped_by", "error"):
        raise DamagedResultError(f"{cell_file} has no valid 'status'; delete the cell's folder and run the grid again")
    key = str(cell.get("key", path.name.removesuffix(records.PARTIAL_SUFFIX)))
    row: dict[str, Any] = {"key": key, "parent": "", "fork_step": 0}  # earlier versions could not fork
    row |= {name: value if _is_scalar(value) else json.dumps(value, sort_keys=True) for name, value in config.items()}
    row |= {name: cell.get(name) for name in _FACTS}
    row |= {"control": controls.get(key, False), "partial": partial, "path": str(tables)}
    row["provenance"] = cell.get("provenance") or {}
    if partial:
        row["status"] = PARTIAL
    return row


def _newest_checkpoint(path: Path) -> Path:
    """The newest `checkpoint-*` folder of a partial cell: the one with the largest number that holds tables."""
    numbered = []
    for entry in path.glob("checkpoint-*"):
        digits = entry.name.removeprefix("checkpoint-")
        if entry.is_dir() and digits.isdigit() and (entry / records.STEPS_FILE).exists():
            numbered.append((int(digits), entry))
    return max(numbered)[1] if numbered else path


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedResultError(
            f"{path} cannot be read ({type(error).__name__}); run the grid again to replace it"
        ) from error
    if not isinstance(content, dict):
        raise DamagedResultError(f"{path} does not hold a JSON object; run the grid again to replace it")
    return content


def _read_table(path: Path, optional: bool, kind: str = "") -> pa.Table | None:
    if optional and not path.exists():
        return None
    try:
        table = pq.ParquetFile(path).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        what = "is missing" if isinstance(error, FileNotFoundError) else f"cannot be read ({type(error).__name__})"
        raise DamagedResultError(f"{path} {what}; its cell is left out of every figure that needs it") from error
    missing = [name for name in _REQUIRED[kind or path.name] if name not in table.column_names]
    if missing:
        raise DamagedResultError(
            f"{path} lacks the column {missing[0]!r}; its cell is left out of every figure that needs it"
        )
    return table


def _concatenate(keys: list[str], tables: list[pa.Table], columns: tuple[records.Column, ...]) -> pd.DataFrame:
    """All cells below one another; a column that no cell recorded is present and empty, infinite values are missing."""
    if tables:
        frame: pd.DataFrame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
        lengths = [table.num_rows for table in tables]
        frame.insert(0, "key", np.repeat(np.array(keys, dtype=object), lengths))
        absent = {c.name: "" if c.kind == "str" else np.nan for c in columns if c.name not in frame}
        floats = frame.select_dtypes("float").columns
        frame[floats] = frame[floats].where(np.isfinite(frame[floats]))
        return frame.assign(**absent)
    empty = {c.name: pd.Series(dtype=_NUMPY_KIND[c.kind]) for c in columns}
    return pd.DataFrame({"key": pd.Series(dtype="object"), **empty})


def _drop_repeats(cells: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Keep one row per key: an ended cell over its own partial remains, the first folder over later ones."""
    ordered = cells.sort_values("partial", kind="stable")
    repeated = int((ordered["key"].duplicated() & ~ordered["partial"]).sum())
    if repeated:
        notes.append(f"{repeated} cells are in more than one folder: the same run, read from the first")
    return ordered.drop_duplicates("key").sort_index().reset_index(drop=True)


def _version_notes(cells: pd.DataFrame) -> list[str]:
    notes = []
    versions = sorted({str(version) for version in cells["rules_version"].dropna()})
    if len(versions) > 1:
        notes.append(f"cells ran under different rules versions ({', '.join(versions)}): they are not comparable")
    elif versions and versions[0] != records.RULES_VERSION:
        notes.append(f"cells ran under rules version {versions[0]}; this program's rules are {records.RULES_VERSION}")
    codes = cells["method_version"].astype(str) + " " + cells.get("plugins", pd.Series("", cells.index)).fillna("")
    per_method = codes.groupby(cells["method"]).nunique()
    notes += [
        f"{name} ran in more than one version of its code: not comparable" for name in per_method[per_method > 1].index
    ]
    for name, usual in KEPT_TOGETHER.items():
        values = {usual if pd.isna(one) else one for one in cells.get(name, [])}
        if len(values) > 1:
            shown = ", ".join(sorted(str(one) or "none" for one in values))
            notes.append(f"cells differ in {name} ({shown}), which no table keeps apart")
    partial = int(cells["partial"].sum())
    if partial:
        notes.append(f"{partial} of {len(cells)} cells are still running or were interrupted")
    return notes


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)

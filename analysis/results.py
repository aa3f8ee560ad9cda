"""Read a results folder into tables. Damaged files are reported, not raised; partial cells come only on request."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vcpo_bench import records
from vcpo_bench.analysis.ahead import ahead
from vcpo_bench.analysis.cell_files import read_cells
from vcpo_bench.analysis.comparability import (
    ComparisonNote,
    comparability_notes,
    drop_repeats,
    name_trainers,
    refuse_mixed_rules,
)
from vcpo_bench.analysis.recorded_tables import COLUMNS, Problem, columns_together, concatenate, most_rows, read_table
from vcpo_bench.analysis.series import by_key
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.files.checksums import Seal
from vcpo_bench.files.regular import IS_LINK
from vcpo_bench.progress import track

GROUP = ["task", "method", "regime", "staleness", "lr", "control"]
"""The columns that identify a group of cells that differ only in their seed."""

NO_CHECKPOINT = "a cell that is running can be read from its first checkpoint on, a few seconds after it began"
_WHERE = "is it the folder given to `vcpo-bench run --out`?"


class Verdicts(NamedTuple):
    """What was said of every cell, and what it rests on: a verdict on other values is no longer true."""

    inputs: list[pd.Series]
    table: pd.DataFrame


@dataclass
class Results:
    """The recorded facts of one or more results folders.

    Attributes:
        folders: Where the cells were read from.
        cells: One row per cell: `key`, every scalar of its configuration (`task`, `method`, `regime`,
            `staleness`, `lr`, `seed`, `steps`, `prompts`, `responses`, `record`, ...), `status`,
            `reason`, `error`, `steps_done`, `seconds`, `rules_version`, `method_version`, `control`,
            `partial`, `provenance` (a dict) and `path` (the folder that holds its tables).
        problems: Damaged or missing files. Tables are read when first used, and the list grows then.
        notes: What a reader must know before comparing the cells, such as a mix of rules versions.
        seals: Checksums of ended cells, by their `path`; a cell of an early version has none.
        verdicts: What `analysis.collapse.rule.events` says of them, by its rule: kept, because many tables ask for it.

    In the tables below, values that are not finite (an overflowed norm or weight) are missing: NaN.
    """

    folders: list[Path]
    cells: pd.DataFrame
    problems: list[Problem] = field(default_factory=list)
    notes: list[ComparisonNote] = field(default_factory=list)
    seals: Mapping[str, Seal] = field(default_factory=dict, repr=False, compare=False)
    verdicts: dict[Hashable, Verdicts] = field(default_factory=dict, init=False, repr=False, compare=False)
    _columns: dict[str, pd.Series] = field(default_factory=dict, init=False, repr=False, compare=False)
    _rows: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        """One row per trajectory (`records.SAMPLES`); empty where none were recorded."""
        return self._table(records.SAMPLES_FILE, optional=True)

    @cached_property
    def episodes(self) -> pd.DataFrame:
        """Example episodes as text (`records.EPISODES`); empty where none were recorded."""
        return self._table(records.EPISODES_FILE, optional=True)

    @cached_property
    def probes(self) -> pd.DataFrame:
        """What `vcpo-bench lab probe` measured on these cells (`records.PROBES`); empty if nothing."""
        found = [folder.glob("*.parquet") for folder in self._inside(records.PROBES_FOLDER)]
        tables = [
            self._read(path, records.PROBES_FOLDER, path.stem) for path in sorted(p for one in found for p in one)
        ]
        read = [table.to_pandas() for table in tables if table is not None]
        columns = [column.name for column in COLUMNS[records.PROBES_FOLDER]]
        together = pd.concat(read, ignore_index=True) if read else pd.DataFrame(columns=columns)
        return together[together["key"].isin(set(self.cells["key"]))].reset_index(drop=True)

    @cached_property
    def lm_eval(self) -> pd.DataFrame:
        """Scores of kept checkpoints by lm-eval (`records.LM_EVAL_SCORES`); `task` is lm-eval's, not the cell's."""
        read: dict[str, pa.Table] = {}
        for folder in self._inside(records.SCORES_FOLDER):
            for key in self.cells["key"]:
                table = self._read(folder / f"{key}.parquet", records.SCORES_FOLDER, key, optional=True)
                if table is not None:
                    read.setdefault(str(key), table)
        return concatenate(read.items(), records.SCORES_FOLDER)

    def step_columns(self, *names: str) -> pd.DataFrame:
        """Some columns of `steps`, with `key` and `step` in front, read without the others: quicker, in less memory.

        The rows of a cell stand together and in order of `step`. A column that no cell has is empty.
        """
        if "steps" in self.__dict__:
            return self.steps.reindex(columns=list(dict.fromkeys(("key", "step", *names))))
        wanted = [name for name in dict.fromkeys(("step", *names)) if name not in self._columns]
        if wanted:
            self._read_columns(wanted)
        chosen = {name: self._columns[name] for name in dict.fromkeys(("key", "step", *names))}
        return pd.DataFrame(chosen, copy=False)

    def release(self, names: Iterable[str]) -> None:
        """Forget columns of the updates that `step_columns` read, for their memory; who asks again reads them again."""
        for name in set(names) - {"key", "step"}:
            self._columns.pop(name, None)

    def _read_columns(self, names: list[str]) -> None:
        """Add columns of the updates to those already read; the first read decides which cells have rows."""
        first = not self._columns
        self._columns |= columns_together(self._updates(names, first), names, records.STEPS_FILE)
        if first:
            keys = np.array(list(self._rows), dtype=object)
            self._columns["key"] = pd.Series(np.repeat(keys, list(self._rows.values())), dtype=object)

    def _updates(self, names: list[str], first: bool) -> Iterator[tuple[pa.Table | None, int]]:
        """Columns of the updates of every cell that has rows, and how many."""
        for key, table in self._each_table(records.STEPS_FILE, columns=names):
            if first and table is not None:
                self._rows[key] = table.num_rows
            if key in self._rows:
                yield table, self._rows[key]

    def samples_by_cell(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The recorded trajectories of one cell after another: all of a large study at once may not fit in memory."""
        cells = zip(self.cells["key"], self.cells["path"], strict=True)
        for key, path in track(cells, "reading trajectories", len(self.cells)):
            table = self._read(Path(path) / records.SAMPLES_FILE, records.SAMPLES_FILE, key, optional=True)
            if table is not None and table.num_rows:
                yield str(key), concatenate([(str(key), table)], records.SAMPLES_FILE).drop(columns="key")

    def select(self, keys: Iterable[str]) -> Results:
        """The same results restricted to some cells; tables already read are not read again."""
        wanted = set(keys)
        cells = self.cells[self.cells["key"].isin(wanted)].reset_index(drop=True)
        chosen = Results(self.folders, cells, self.problems, self.notes, self.seals)
        for name in ("steps", "evals", "lags", "samples", "episodes", "lm_eval"):
            if name in self.__dict__:
                table: pd.DataFrame = self.__dict__[name]
                chosen.__dict__[name] = table[table["key"].isin(wanted)].reset_index(drop=True)
        return chosen

    def _table(self, kind: str, optional: bool = False) -> pd.DataFrame:
        return concatenate(self._tables(kind, optional), kind)

    def _tables(self, kind: str, optional: bool = False) -> Iterator[tuple[str, pa.Table]]:
        """The table of every cell that has one."""
        return ((key, table) for key, table in self._each_table(kind, optional) if table is not None)

    def _each_table(
        self, kind: str, optional: bool = False, columns: list[str] | None = None
    ) -> Iterator[tuple[str, pa.Table | None]]:
        """The table of every cell, None where it cannot be read; cells that ended in an error may have none."""
        # As plain texts: pandas unpacks a column of texts one by one when it is iterated.
        keys, folders, ends = (self.cells[name].to_numpy(dtype=object) for name in ("key", "path", "status"))

        def found(cell: tuple[str, str, str]) -> pa.Table | Problem | None:
            key, folder, end = cell
            return self._open(Path(folder, kind), kind, key, optional or end == "error", columns)

        tables = zip(keys, ahead(found, zip(keys, folders, ends, strict=True)), strict=True)
        for key, table in track(tables, f"reading {kind.removesuffix('.parquet')}", len(keys)):
            yield str(key), self._noted(table)

    def _read(
        self, path: Path, kind: str, key: object, optional: bool = False, columns: list[str] | None = None
    ) -> pa.Table | None:
        """One table of one cell; None where it is absent, or damaged, which is then among the problems."""
        return self._noted(self._open(path, kind, key, optional, columns))

    def _noted(self, found: pa.Table | Problem | None) -> pa.Table | None:
        """A table, or None; a problem is noted, once."""
        if not isinstance(found, Problem):
            return found
        if found not in self.problems:
            self.problems.append(found)
        return None

    def _open(
        self, path: Path, kind: str, key: object, optional: bool, columns: list[str] | None
    ) -> pa.Table | Problem | None:
        """One table of one cell, None where it is absent, or what is wrong with it; changes nothing."""
        seal, most = self.seals.get(os.path.dirname(path)), self._most_rows(str(key), kind)
        if seal is not None:
            with suppress(DamagedResultError):  # if its cell was replaced since, the checksums beside it are others
                return read_table(path, kind, optional, columns, seal, most)
        try:
            return read_table(path, kind, optional, columns, most_rows=most)
        except DamagedResultError as error:
            folder = next((one for one in self.folders if path.is_relative_to(one)), path.parent)
            return Problem(folder, str(path.relative_to(folder)), str(key), error.what)

    @cached_property
    def _made(self) -> dict[str, tuple[int, int]]:
        """Updates of every ended cell, and the trajectories of each, where the cell says so."""
        names = ("key", "steps_done", "prompts", "responses")
        if not set(names) <= set(self.cells.columns):
            return {}
        ended = self.cells.loc[~self.cells["partial"].astype(bool), list(names)].dropna()
        counts = ended[["prompts", "responses"]].prod(axis=1).astype(int)
        return dict(zip(ended["key"], zip(ended["steps_done"].astype(int), counts, strict=True), strict=True))

    def _most_rows(self, key: str, kind: str) -> int | None:
        made = self._made.get(key)
        return None if made is None else most_rows(kind, *made)

    def damaged_keys(self) -> set[str]:
        """Cells of which a file is damaged or missing, as far as their tables have been read."""
        return {problem.key for problem in self.problems if problem.key}

    def steps_by_cell(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The updates of one cell after another, for what needs many columns of a large study."""
        if "steps" in self.__dict__:
            yield from by_key(self.steps)
            return
        for key, table in self._tables(records.STEPS_FILE):
            yield key, concatenate([(key, table)], records.STEPS_FILE)

    def _inside(self, name: str) -> list[Path]:
        """The folders of a name in the results folders; one that is only a link is among the problems."""
        for folder in self.folders:
            if (folder / name).is_symlink():
                self._noted(Problem(folder, name, "", IS_LINK))
        return [folder / name for folder in self.folders if not (folder / name).is_symlink()]


def as_folders(folder: str | Path | Iterable[str | Path]) -> list[Path]:
    """One results folder, or several, as a list."""
    return [Path(folder)] if isinstance(folder, str | Path) else [Path(one) for one in folder]


def load(folder: str | Path | Iterable[str | Path], include_partial: bool = False) -> Results:
    """Read the cells of one results folder, or of several that are pooled.

    Args:
        folder: A folder as `records` describes it, or several.
        include_partial: Also read running or interrupted cells, from their newest checkpoint; their `partial` is
            True and their `status` is `"partial"`.

    Raises:
        UsageError: A folder does not exist or holds no cells.
    """
    folders = as_folders(folder)
    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    seals: dict[str, Seal] = {}
    for one in folders:
        found, damaged, sealed = read_cells(one, include_partial)
        rows += found
        problems += damaged
        seals |= sealed
    if not rows:
        reason = f": {problems[0]}" if problems else f"; {NO_CHECKPOINT}" if include_partial else f"; {_WHERE}"
        raise UsageError(f"no finished cell in {', '.join(str(one) for one in folders)}{reason}")
    cells, repeats = drop_repeats(name_trainers(pd.DataFrame(rows)))
    return Results(folders, cells, problems, repeats + comparability_notes(cells), seals)


def load_comparable(folder: str | Path | Iterable[str | Path], include_partial: bool = False) -> Results:
    """`load` for readers that set cells beside each other.

    Raises:
        UsageError: As `load`, or the cells ran under different versions of the rules.
    """
    results = load(folder, include_partial)
    refuse_mixed_rules(results.cells)
    return results

"""What tests of forks and probes share: recorded tables, and forks that are run to their end."""

from pathlib import Path

import pyarrow.parquet as pq

from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.bench.replay.fork import ForkSpec, plan_forks, write_origins
from vcpo_bench.bench.running.cell.run_cell import run_cell


def quiet(*_: object) -> None:
    pass


def tables(folder: Path) -> dict[str, dict[str, list]]:
    """Everything recorded but wall-clock times."""
    found = {}
    for path in sorted(folder.glob("*.parquet")):
        table = pq.read_table(path)
        found[path.name] = table.select([n for n in table.column_names if not n.startswith("seconds")]).to_pydict()
    return found


def run_forks(spec: ForkSpec, keep_every: int = 0) -> dict[str, Path]:
    """The folders of the forks by method."""
    cells = plan_forks(spec)
    write_origins(spec, cells, False, quiet)
    folder = ResultsFolder(spec.out)
    with folder.locked(wait=False):
        folder.update_grid({cell.key: {"control": cell.control} for cell in cells})
    assert [run_cell(cell, folder.cells, keep_every, quiet) for cell in cells] == ["completed"] * len(cells)
    return {cell.config.method: folder.cells / cell.key for cell in cells}

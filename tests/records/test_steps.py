"""The columns of steps.parquet are found by listing a folder; one more file is one more column, everywhere."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest
from patience import within

import vcpo_bench
from vcpo_bench.records import RULES_VERSION, steps
from vcpo_bench.records.steps import DIAGNOSTICS, STEPS

ROOT = Path(vcpo_bench.__file__).parent
NEW = '''"""A diagnostic that nobody has listed."""

from vcpo_bench.records.diagnostic import Diagnostic, GradientDiagnostic

COLUMNS = (
    Diagnostic("rows", "count", "consumed trajectories", lambda facts: len(facts.mask), kind="int"),
    GradientDiagnostic("grad_max", "1", "largest of the gradient", measure=lambda seen: float(seen.flat.abs().max())),
)
'''
USE = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
from vcpo_bench.analysis.results import load
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.results_folder import ResultsFolder
from vcpo_bench.records.settings import CellSettings
from vcpo_bench.bench.outside.mirror.follow import history
from vcpo_bench.bench.running.cell.run_cell import run_cell

settings = CellSettings(steps=2, prompts=2, responses=3, record="diagnostics")
(cell,) = plan_grid(GridSpec(("clip",), (0,), (0,), ("chain",), settings=settings, controls=False))
folder = ResultsFolder(Path(sys.argv[1]))
assert run_cell(cell, folder.cells, 0, lambda *_: None) == "completed"
table = pq.read_table(folder.cells / cell.key / "steps.parquet")
assert table["rows"].to_pylist() == [6, 6]
assert table.schema.field("rows").metadata[b"meaning"] == b"consumed trajectories"
assert min(table["grad_max"].to_pylist()) > 0
assert table.column_names[-1] == "grad_max"
mirrored = dict(history(folder.cells / cell.key, 0, ended=True))
assert (mirrored[1]["steps/rows"], mirrored[1]["steps/grad_max"]) == (6, table["grad_max"][1].as_py())
assert list(load(folder.path).steps["rows"]) == [6, 6]
"""


def test_every_column_says_what_it_is() -> None:
    for name, one in DIAGNOSTICS.items():
        assert one.name == name
        assert one.unit
        assert len(one.meaning.splitlines()) == 1
        assert one.axis_label()
        assert one.column() in STEPS


def test_two_diagnostics_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "again.py").write_text("from vcpo_bench.records.steps.gradients import COLUMNS\n")
    monkeypatch.setattr(steps, "__path__", [*steps.__path__, str(tmp_path)])
    try:
        with pytest.raises(ValueError, match=r"two diagnostics have one name: \['grad_cosine', 'head_grad_norm'\]"):
            steps._listed()
    finally:
        sys.modules.pop(f"{steps.__name__}.again", None)


@pytest.mark.slow
def test_one_new_file_is_recorded_mirrored_and_read(tmp_path: Path) -> None:
    package = tmp_path / "vcpo_bench"
    package.mkdir()
    for path in ROOT.iterdir():
        if path.suffix == ".py" or ((path / "__init__.py").is_file() and path.name != "records"):
            (package / path.name).symlink_to(path)
    shutil.copytree(ROOT / "records", package / "records")
    (package / "records" / "steps" / "zz_new.py").write_text(NEW)
    command = [sys.executable, "-c", USE, str(tmp_path / "results")]
    subprocess.run(
        command,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        timeout=within(600),
    )


FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "recorded_columns.json").read_text())
VERSION = GOLDEN.pop("rules_version")
written = run_path(str(FOLDER / "make_recorded_columns.py"))["written"]


def test_the_golden_file_is_of_these_rules() -> None:
    assert VERSION == RULES_VERSION, "new rules: regenerate the golden columns in the same commit"


@pytest.mark.parametrize("table", [name for name in GOLDEN if name != "steps"])
def test_tables_are_those_of_the_golden_file(table: str) -> None:
    assert written(table) == GOLDEN[table]


def test_columns_of_an_update_keep_their_place_whatever_is_added() -> None:
    known = {column[0] for column in GOLDEN["steps"]}
    assert [column for column in written("steps") if column[0] in known] == GOLDEN["steps"]

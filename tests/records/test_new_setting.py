"""One more line in the table of settings is one more setting, everywhere."""

import shutil
import subprocess
import sys
from pathlib import Path

from patience import within

import vcpo_bench
from vcpo_bench.bench.cells.config import CellConfig

ROOT = Path(vcpo_bench.__file__).parent
HELPERS = Path(__file__).parents[1] / "helpers"
PLACE = '    """What all cells of a grid have in common."""\n'
NEW = """
    light_bulbs: Annotated[int, Setting(
        unit="count", meaning="bulbs of the lamp", help="Bulbs of the lamp.", least=1, apart="budget",
    )] = 3
"""
USE = """
import json
import sys
from dataclasses import replace
from pathlib import Path

import vcpo_bench as vb
from command_line import call
from vcpo_bench.analysis.comparability import BUDGET, DEFAULTS
from vcpo_bench.api.units import CELL_COLUMNS
from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.grid import plan_grid
from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.errors import DamagedResultError, UsageError
from vcpo_bench.records.cell_file import read_cell_file
from vcpo_bench.records.settings import CellSettings

here, key = Path(sys.argv[1]), sys.argv[2]
REFUSED = "--light-bulbs 0: must be a whole number, 1 or more"


def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except (UsageError, DamagedResultError) as error:
        return str(error)
    raise AssertionError("not refused")


# the model, and its key
cell = CellConfig(method="clip", staleness=1, seed=0)
assert (cell.light_bulbs, cell.key(1)) == (3, key), "no old key moves"
assert replace(cell, light_bulbs=4).key(1) != key
assert refused(replace, cell, light_bulbs=0) == REFUSED
cells = plan_grid(GridSpec(("clip",), (1,), (0,), settings=CellSettings(light_bulbs=4)))
assert {one.config.light_bulbs for one in cells} == {4}
# the flag, the YAML file, its schema, and the function
assert "--light-bulbs" in (shown := call("run", "--help").output) and "Bulbs of the lamp. [default: 3]" in shown
assert call("run", "--light-bulbs", "0").stderr == f"error: {REFUSED}\\n"
(here / "c.yaml").write_text("light_bulbs: 0")
assert call("run", "--config", str(here / "c.yaml")).stderr == f"error: {REFUSED}\\n"
rule = json.loads(call("lab", "schema").stdout)["properties"]["light-bulbs"]
assert rule == {"type": "integer", "default": 3, "description": "Bulbs of the lamp."}
assert refused(vb.run, light_bulbs=0) == REFUSED
# the check of cell.json
path = here / "a" / "cell.json"
path.parent.mkdir()
path.write_text(json.dumps({"key": "a", "status": "completed", "config": cell.values() | {"light_bulbs": "x"}}))
assert "has config.light_bulbs = 'x', not a whole number, 1 or more" in refused(read_cell_file, path)
# unit, meaning and comparability
assert CELL_COLUMNS["light_bulbs"] == ("count", "bulbs of the lamp")
assert "light_bulbs" in BUDGET
assert DEFAULTS["light_bulbs"] == 3
"""


def test_one_new_line_is_a_setting_everywhere(tmp_path: Path) -> None:
    package = tmp_path / "vcpo_bench"
    package.mkdir()
    for path in ROOT.iterdir():
        if path.suffix == ".py" or ((path / "__init__.py").is_file() and path.name != "records"):
            (package / path.name).symlink_to(path)
    shutil.copytree(ROOT / "records", package / "records")
    table = package / "records" / "settings.py"
    assert table.read_text().count(PLACE) == 1
    table.write_text(table.read_text().replace(PLACE, PLACE + NEW))
    key = CellConfig(method="clip", staleness=1, seed=0).key(1)
    subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path), key],
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{HELPERS}", "OMP_NUM_THREADS": "1", "COLUMNS": "120"},
        timeout=within(120),
    )

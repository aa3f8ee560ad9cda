"""Time and memory of a folder with thousands of cells: `python tests/benchmarks/load.py [--cells N] [--steps N]`.

Writes about 250 synthetic cells and copies them under further seeds; the tables are hard links, so that the folder is
small. Then runs every reading command in a process of its own. Bounds asked for with 5,000 cells: `show` and the scan
of a resumed grid in 5 s; `compare` and `report` in 60 s and 1 GB.
"""

import argparse
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
METHODS = ("vcpo", "vespo", "gspo", "clip", "tis", "vcpo(ess=off)", "vcpo(baseline=group)", "mis")
BASE_SEEDS = 2
FORMS = ("show", "scan", "compare", "report")


def build(folder: Path, cells: int, steps: int) -> int:
    """Write about `cells` cells: 8 methods x 3 lags x 2 rates x 2 tasks and controls, the rest copies as more seeds."""
    from vcpo_bench.files.checksums import write_sealed

    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    spec = importlib.util.spec_from_file_location("synthetic", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    synthetic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(synthetic)
    places = {"lags": (1, 16, 64), "tasks": ("chain", "walk"), "lrs": (1e-4, 3e-4)}
    synthetic.build_results(folder, methods=METHODS, seeds=range(BASE_SEEDS), steps=steps, **places)
    grid = json.loads((folder / "grid.json").read_text())["cells"]
    base = sorted((folder / "cells").iterdir())
    for copy in range(1, -(-cells // len(base))):
        for cell in base:
            key = f"{cell.name}-{copy}"
            shutil.copytree(cell, folder / "cells" / key, copy_function=os.link)
            facts = json.loads((cell / "cell.json").read_text())
            facts["key"], facts["config"]["seed"] = key, facts["config"]["seed"] + copy * BASE_SEEDS
            (folder / "cells" / key / "cell.json").unlink()
            write_sealed(folder / "cells" / key / "cell.json", facts)
            grid[key] = grid[cell.name]
    for cell in base:
        write_sealed(cell / "cell.json", json.loads((cell / "cell.json").read_text()))
    write_sealed(folder / "grid.json", {"cells": grid}, cover=False)
    return len(grid)


def measure(form: str, folder: Path) -> None:
    """Do one thing in this process and print wall time, processor time and peak memory as JSON."""
    began = time.perf_counter()
    if form == "show":
        from vcpo_bench.commands.support.scoreboard import show_scoreboard

        show_scoreboard(folder, as_json=False)
    elif form == "scan":
        from vcpo_bench.bench.cells.results_folder import ended_keys

        ended_keys(folder)
    elif form == "compare":
        from vcpo_bench.analysis.commands import run

        run("compare", folder)
    else:
        from vcpo_bench.reports.writers.html import write_page

        write_page(folder, folder / "report.html")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([time.perf_counter() - began, time.process_time(), peak]))


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--folder", type=Path, help="Measure this folder instead of building one.")
    parser.add_argument("--measure", metavar="FORM", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name) / "results"
        number = len(os.listdir(folder / "cells")) if options.folder else build(folder, options.cells, options.steps)
        print(f"{number} cells\n{'':<8} {'wall s':>8} {'processor s':>12} {'peak MiB':>9}")
        for form in options.forms:
            command = [sys.executable, __file__, "--measure", form, "--folder", str(folder)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            wall, processor, peak = json.loads(answer.stdout.splitlines()[-1])
            print(f"{form:<8} {wall:>8.1f} {processor:>12.1f} {peak:>9.0f}", flush=True)


if __name__ == "__main__":
    main()

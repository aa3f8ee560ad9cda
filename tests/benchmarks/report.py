"""How long, and in how much memory, a report takes: `python tests/benchmarks/report.py [--cells N ...] [--steps N]`.

Writes synthetic results folders, then makes the page, the PDF and the figures for papers, each in a process of its own
with one thread, and prints a table. Bounds asked for of the page: 200 cells in 20 s on one core and 1.5 GB and at most
3 MB, 1,000 cells in 90 s.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
METHODS = ("vcpo", "vespo", "gspo", "clip", "tis", "vcpo(ess=off)", "vcpo(baseline=group)", "mis")
FORMS = ("page", "pdf", "figures")


def build(folder: Path, cells: int, steps: int) -> int:
    """Write about `cells` cells: up to 8 methods x 3 lags x 2 rates x seeds on two tasks, with controls."""
    spec = importlib.util.spec_from_file_location("synthetic", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(ROOT / "tests" / "helpers"))
    synthetic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(synthetic)
    methods = METHODS if cells > 500 else METHODS[:4]
    seeds = range(max(1, round(cells / (4 * (len(methods) * 3 + 4)))))
    places = {"lags": (1, 16, 64), "tasks": ("chain", "walk"), "lrs": (1e-4, 3e-4)}
    synthetic.build_results(folder, methods=methods, seeds=seeds, steps=steps, **places)
    return len(list((folder / "cells").iterdir()))


def measure(form: str, folder: Path, out: Path) -> None:
    """Make one form of the report in this process and print processor time, size and peak memory as JSON."""
    began = time.perf_counter()
    if form == "page":
        from vcpo_bench.reports.writers.html import write_page

        size = write_page(folder, out / "report.html").stat().st_size
    elif form == "pdf":
        from vcpo_bench.reports.writers.pdf import write_pdf

        size = write_pdf(folder, out / "report.pdf").stat().st_size
    else:
        from vcpo_bench.reports.writers.paper import write_figures

        size = sum(path.stat().st_size for path in write_figures(folder, out / "figures", "icml"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([time.process_time(), time.perf_counter() - began, size / 1e6, peak]))


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--measure", nargs=3, metavar=("FORM", "FOLDER", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]), Path(options.measure[2]))
        return
    print(f"{'cells':>6} {'form':<8} {'processor s':>11} {'wall s':>8} {'MB':>7} {'peak MiB':>9}")
    for cells in options.cells:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            number = build(folder / "results", cells, options.steps)
            for form in options.forms:
                command = [sys.executable, __file__, "--measure", form, str(folder / "results"), name]
                environment = {**os.environ, "OMP_NUM_THREADS": "1"}
                answer = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
                processor, wall, size, peak = json.loads(answer.stdout)
                print(f"{number:>6} {form:<8} {processor:>11.1f} {wall:>8.1f} {size:>7.2f} {peak:>9.0f}", flush=True)


if __name__ == "__main__":
    main()

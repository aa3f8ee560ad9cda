"""How long, and in how much memory, the analyses take: `python tests/benchmarks/analyze.py [--cells N] [--steps N]`.

Writes a synthetic results folder (steps and evals tables), then runs every analysis in a process of its own and
prints a table. Bounds asked for: 30 s and 2 GB each, bootstraps aside (2 minutes with 10,000 replications of every
interval).
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
METHODS = ("vcpo", "vcpo(ess=off)", "vcpo(baseline=group)", "vespo", "gspo", "clip", "clip+ess", "tis")


def build(folder: Path, cells: int, steps: int) -> int:
    """Write about `cells` cells of `steps` updates: methods x lags x rates x seeds on two tasks."""
    spec = importlib.util.spec_from_file_location("synthetic", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    synthetic = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(synthetic)
    per_seed = 2 * 2 * (len(METHODS) * 3 + 4)
    synthetic.build_results(
        folder,
        methods=METHODS,
        lags=(1, 16, 64),
        seeds=range(round(cells / per_seed)),
        steps=steps,
        tasks=("chain", "walk"),
        lrs=(1e-4, 3e-4),
    )
    return len(list((folder / "cells").iterdir()))


def measure(kind: str, folder: Path, replications: int) -> None:
    """Run one analysis in this process and print its time and peak memory as JSON."""
    began = time.perf_counter()
    from vcpo_bench.analysis.commands import ANALYSES
    from vcpo_bench.analysis.commands.compare import analyze_compare
    from vcpo_bench.analysis.results import load

    results = load(folder)
    loaded = (len(results.steps), len(results.evals), time.perf_counter() - began)
    findings = analyze_compare(results, replications) if kind == "compare" else ANALYSES.parse(kind).run(results)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "read": loaded[2], "MiB": peak, "statements": len(findings.statements)}))


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--measure", nargs=3, metavar=("KIND", "FOLDER", "REPLICATIONS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        kind, folder, replications = asked.measure
        measure(kind, Path(folder), int(replications))
        return
    with tempfile.TemporaryDirectory() as folder:
        number = build(Path(folder), asked.cells, asked.steps)
        print(f"{number} cells x {asked.steps} updates")
        runs = [("weights", 0), ("gradients", 0), ("collapse", 0), ("compare", 10), ("compare", 10_000)]
        for kind, replications in runs:
            command = [sys.executable, __file__, "--measure", kind, folder, str(replications)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            name = f"{kind} ({replications} replications)" if replications else kind
            print(f"{name:30} {found['seconds']:6.1f} s (reading {found['read']:.1f} s) {found['MiB']:7.0f} MiB")


if __name__ == "__main__":
    main()

"""Everything this project wants to know from a GPU, in calls of at most nine and a half minutes.

    python tests/gpu/day.py --stage 1 --out gpu-day       # docs/gpu.md has the order; the same call continues
    python tests/gpu/day.py --summary --out gpu-day       # the tables, in Markdown
    python tests/gpu/day.py --tables DIR --out gpu-day    # as CSV files
    python tests/gpu/day.py --stage all --device cpu --tiny --out day    # proves that it runs; numbers mean nothing

Each measurement is a process of its own. What is measured is not measured again, and what failed is tried again after
everything else. What a call brings home, copied into `--home`, lets another machine continue. No network is needed.
The exit code is 0 when the stages are complete, 1 when a measurement failed, 3 when some are left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent))

import home
import launch
import ledger
import parts
import stages
import summary
from launch import Place, measure
from stages import Step

LIMIT = 570.0
"""Seconds of a call. One of them, the start of the machine and the transfers fit into a quarter of an hour."""
SHORTEST = 20.0
"""Seconds below which nothing is begun: a process needs about ten to import what it measures."""
CORES_OF_ONE = 2
"""Cores for each of the measurements that run beside each other: what is not timed does."""
WORK = Path(tempfile.gettempdir()) / "vcpo-bench-gpu-day"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run stages, or print the summary."""
    asked = _parser().parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.summary:
        print(summary.page(asked.out))
        return 0
    if asked.tables:
        import tables  # with pandas, which nothing else here needs

        print(*tables.write(asked.out, asked.tables), sep="\n")
        return 0
    place = Place.of(asked.device, asked.tiny, asked.work)
    home.restore(place, asked.home)
    parts.collect(place.folder / "work")
    left, failed = _run(asked, place)
    home.bring(place, asked.out)
    if left:
        print(f"left for another call: {', '.join(left)}")
    return 1 if failed else 3 if left else 0


def _run(asked: argparse.Namespace, place: Place) -> tuple[list[str], list[str]]:
    """Names of the measurements that are left, and of those that failed."""
    began, bringing = perf_counter(), Lock()
    steps = [(stage, step) for stage in asked.stage for step in ledger.in_turn(stages.STAGES[stage], stage, place)]

    def carried_out(stage: int, step: Step, beside: int) -> tuple[str, str]:
        seconds = asked.limit - perf_counter() + began
        if seconds < SHORTEST:
            return step.name, "unfinished"
        status = measure(step, stage, place, seconds, beside)
        facts = ledger.read(ledger.path_of(place.folder, stage, step.name))
        print(f"{step.name}: {status}, {perf_counter() - began:.0f} s", *summary.section(facts), sep="\n", flush=True)
        with bringing:  # at once: this call may be killed
            home.bring(place, asked.out)
        return step.name, status

    untimed = [each for each in steps if not each[1].timed]
    beside = max(1, min(len(untimed), launch.cores() // CORES_OF_ONE))
    with ThreadPoolExecutor(beside) as pool:
        ended = list(pool.map(lambda each: carried_out(*each, beside), untimed))
    ended += [carried_out(stage, step, 1) for stage, step in steps if step.timed]
    return [name for name, status in ended if status == "unfinished"], [n for n, status in ended if status == "failed"]


def _stages(text: str) -> list[int]:
    """`all`, or numbers with commas."""
    found = sorted(stages.STAGES) if text == "all" else [int(part) for part in text.split(",")]
    if unknown := set(found) - set(stages.STAGES):
        raise ValueError(unknown)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", type=_stages, default="all", metavar="N", help="1 to 8, several as 1,2, or all")
    parser.add_argument("--out", type=Path, default=Path("gpu-day"), help="what comes home: a few small files")
    parser.add_argument("--home", type=Path, default=home.CARRIED, help="what earlier calls brought home")
    parser.add_argument("--work", type=Path, default=WORK, help="what stays on the machine between calls")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu", "mock"))
    parser.add_argument("--tiny", action="store_true", help="sizes of seconds on a CPU; the numbers mean nothing")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of this call")
    parser.add_argument("--summary", action="store_true", help="print the tables of --out")
    parser.add_argument("--tables", type=Path, help="write the tables of --out as CSV files into this folder")
    return parser


if __name__ == "__main__":
    sys.exit(main())

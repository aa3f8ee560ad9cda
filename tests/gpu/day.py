"""Everything this project wants to know from a GPU, in four calls of at most eight minutes.

    python tests/gpu/day.py --stage 1 --out gpu-day       # then 2, 3 and 4; the same call continues what is left
    python tests/gpu/day.py --summary --out gpu-day       # the tables, in Markdown
    python tests/gpu/day.py --stage 1 --device cpu --tiny --out day      # proves that it runs; numbers mean nothing

Each measurement leaves one JSON file with hardware, versions and date. One that is there is not repeated. No network
is needed. The exit code is 0 when the stage is complete, 1 when a measurement failed, 3 when some are left.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent))

import kit
import stages
import summary

LIMIT = 470.0
"""Seconds after which a call starts nothing new."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a stage, or print the summary."""
    asked = _parser().parse_args(arguments)
    if asked.list:
        print(*sorted(stages.STAGES), sep="\n")
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.summary:
        print(summary.page(asked.out))
        return 0
    began = perf_counter()
    setup = kit.Setup(asked.device, asked.tiny, asked.out / "work", lambda: asked.limit - (perf_counter() - began))
    left, failed = [], []
    for name, measure in stages.STAGES[asked.stage].items():
        if _done(kit.path_of(asked.out, asked.stage, name)):
            print(f"{name}: done before", flush=True)
        elif setup.seconds() <= 0:
            left.append(name)
        else:
            status = kit.record(name, asked.stage, measure, setup, asked.out)
            print(f"{name}: {status}, {asked.limit - setup.seconds():.0f} s", flush=True)
            left += [name] * (status == "unfinished")
            failed += [name] * (status == "failed")
    if left:
        print(f"left for another call: {', '.join(left)}")
    return 1 if failed else 3 if left else 0


def _done(path: Path) -> bool:
    """Whether the measurement of that file was completed."""
    return path.is_file() and json.loads(path.read_text())["status"] == "ok"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", type=int, choices=sorted(stages.STAGES), default=1)
    parser.add_argument("--out", type=Path, default=Path("gpu-day"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which nothing new is started")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--list", action="store_true", help="print the stages")
    return parser


if __name__ == "__main__":
    sys.exit(main())

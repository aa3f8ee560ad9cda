"""Reading logs is linear in their bytes: ratio of processor time for ten times the bytes, by kind of log.

`python tests/benchmarks/log_growth.py [NAME ...]`
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vcpo_bench.analysis.logs import read_run
from vcpo_bench.errors import UsageError

Log = Callable[[int], str]

LOGS: dict[str, Log] = {
    "rows.jsonl": lambda n: "\n".join(json.dumps({"step": i, "critic/score/mean": 0.5}) for i in range(20 * n)),
    "names.jsonl": lambda n: "\n".join(json.dumps({f"rewards/x{i}/mean": 1.0 for i in range(6 * n)}) for _ in range(6)),
    "a_new_name_each.jsonl": lambda n: "\n".join(
        json.dumps({"step": i, f"val-core/x{i}/mean@1": 1.0}) for i in range(5 * n)
    ),
    "columns.csv": lambda n: "\n".join([",".join(f"n{i}" for i in range(20 * n)), *[",".join(["1"] * 20 * n)] * 3]),
    "rows.csv": lambda n: "step,critic/score/mean\n" + "\n".join(f"{i},0.5" for i in range(40 * n)),
    "escapes.log": lambda n: "\x1b]" * 3000 * n,
    "braces.log": lambda n: "{'" * 10_000 * n,
    "titles.log": lambda n: "step 1: {'a': 1, " * 2000 * n,
    "verl.log": lambda n: "\n".join(f"step:{i} - critic/score/mean:0.5 - actor/entropy:1" for i in range(10 * n)),
}
SMALL, LARGE = 1000, 10_000
RUNS = {SMALL: 5, LARGE: 3}
MOST = 12.0


def seconds(path: Path, runs: int) -> float:
    """Processor time of reading a log, whether it holds something or not: the least of some runs."""
    times = []
    for _ in range(runs):
        begin = time.process_time()
        with suppress(UsageError):
            read_run(path)
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    """Print a line for each kind; the exit code is 1 if one of them grows faster than its bytes."""
    chosen = {name: log for name, log in LOGS.items() if name in sys.argv[1:] or len(sys.argv) == 1}
    over = []
    with tempfile.TemporaryDirectory() as folder:
        for name, write in chosen.items():
            path, times, sizes = Path(folder) / name, list[float](), list[int]()
            for size in (SMALL, LARGE):
                path.write_text(write(size))
                sizes.append(path.stat().st_size)
                times.append(seconds(path, RUNS[size]))
            grown, ratio = sizes[1] / sizes[0], times[1] / times[0]
            over += [name] * (ratio > MOST * grown / 10)
            print(f"{name:24} {times[0]:6.2f} s {times[1]:6.2f} s  bytes {grown:5.1f}, time {ratio:5.1f}", flush=True)
    sys.exit(f"not linear: {', '.join(over)}" if over else 0)


if __name__ == "__main__":
    main()

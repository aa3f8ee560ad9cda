"""Time and memory of `diagnose` on a verl log of a million rows: `python tests/benchmarks/foreign_log.py`."""

import json
import resource
import tempfile
import time
from pathlib import Path

from vcpo_bench.analysis.diagnosis import diagnose, read_run

ROWS = 1_000_000
NAMES = ("critic/score/mean", "actor/entropy", "actor/grad_norm", "actor/pg_loss", "response_length/mean", "actor/lr")


def main() -> None:
    """Print seconds of processor time and the peak of resident memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        with path.open("w") as file:
            for step in range(ROWS):
                file.write(json.dumps({"step": step, "data": dict.fromkeys(NAMES, 0.5 + step / ROWS)}) + "\n")
        before = time.process_time()
        found = diagnose(read_run(path))
        seconds = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{ROWS:,} rows: {seconds:.1f} s of processor time, {memory:.0f} MB, verdict {found.verdict}")


if __name__ == "__main__":
    main()

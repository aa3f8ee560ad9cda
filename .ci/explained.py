"""Compares what bandit found with what is explained: `explained.py FOUND.json EXPLAINED.txt`.

A line of the explanations is `TEST FILE COUNT REASON`. More findings than explained, or fewer, end with exit code 1.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def main() -> int:
    """Print what differs; 1 if anything does."""
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    found = Counter((one["test_id"], one["filename"].removeprefix("./")) for one in report["results"])
    explained: Counter[tuple[str, str]] = Counter()
    for line in Path(sys.argv[2]).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            test, file, count, reason = line.split(maxsplit=3)
            explained[test, file] = int(count) if reason else 0
    wrong = [
        f"bandit {test} in {file}: {found[test, file]} found, {explained[test, file]} explained in {sys.argv[2]}"
        for test, file in sorted(found | explained)
        if found[test, file] != explained[test, file]
    ]
    wrong += [f"bandit could not read {one['filename']}: {one['reason']}" for one in report["errors"]]
    read = len([name for name in report["metrics"] if name != "_totals"])
    print(f"bandit: {read} files, {found.total()} findings, {explained.total()} explained", *wrong, sep="\n")
    return int(bool(wrong) or read < 300)


if __name__ == "__main__":
    sys.exit(main())

"""Which lanes of .ci/run there is time for: `python .ci/choose.py SECONDS SLOWER TURN`.

A lane is a part of the slow tests or a script of .ci/integrations.d. Two run at a time. On an ordinary machine all of
them fit. A machine that is SLOWER by some factor gets as many as end within SECONDS, other ones at every TURN.
Prints the chosen lanes, long ones first, so that none is left running alone at the end. The others are named on stderr.
"""

import random
import re
import sys
from pathlib import Path

SCRIPTS = Path(__file__).with_name("integrations.d")
SLOW = {"bench": 5.0, "hardening": 2.0, "tools": 3.0, "packaging": 2.0, "others": 4.0}
"""Minutes of the slow tests of a folder of tests/, and of all `others`."""
AT_A_TIME = 2


def lanes() -> dict[str, float]:
    """Every lane with its minutes beside another one on an ordinary machine."""
    slow = {f"slow_{part}": minutes for part, minutes in SLOW.items()}
    return slow | {script.stem: _minutes(script) for script in sorted(SCRIPTS.glob("*.sh"))}


def chosen(minutes: dict[str, float], seconds: float, slower: float, turn: int) -> list[str]:
    """The lanes that end within these seconds, long ones first."""
    names = sorted(minutes)
    random.Random(turn).shuffle(names)
    taken: list[str] = []
    for name in names:
        more = sorted([*taken, name], key=lambda one: -minutes[one])
        if slower * 60 * longest([minutes[one] for one in more]) <= seconds:
            taken = more
    return taken


def longest(minutes: list[float]) -> float:
    """Minutes until the last lane has ended, each started when a place is free."""
    ends = [0.0] * AT_A_TIME
    for each in minutes:
        ends[ends.index(min(ends))] += each
    return max(ends)


def _minutes(script: Path) -> float:
    found = re.search(r"^# minutes: ([0-9.]+)$", script.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{script}: no line '# minutes: N'")
    return float(found[1])


def main() -> None:
    """Print the choice."""
    seconds, slower, turn = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    every = lanes()
    taken = chosen(every, seconds, slower, turn)
    for name in taken:
        print(name)
    for name in sorted(set(every) - set(taken)):
        print(f"{name}: NOT RUN, no time on a machine {slower:g} times slower than an ordinary one", file=sys.stderr)


if __name__ == "__main__":
    main()

"""What happened to a run of another trainer: its log, its collapse, the order of events.

Run it: `python examples/diagnose_a_log.py LOG`, with the console output of verl, or a log of TRL, prime-rl, SkyRL ...
It needs numpy only.
"""

import sys

import vcpo_bench as vb


def explain(path: str) -> list[str]:
    """The verdict and its reason, what moved first, and the probable causes."""
    found = vb.diagnose(path)
    moved = [
        f"update {one.step:g}: {one.logged_as} from {one.before:.3g} to {one.after:.3g}" for one in found.departures
    ]
    causes = [f"{one.standing} cause: {one.name}" for one in found.causes]
    return [f"{found.run.framework}, {found.verdict}: {found.outcome.reason}", *moved, *causes]


if __name__ == "__main__":
    print("\n".join(explain(sys.argv[1])))

"""Why jobs of Slurm do not start, in words: `squeue` names a reason for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_BUSY = {"Resources", "Priority", "None"}
_LATER = {"Dependency", "BeginTime", "JobArrayTaskLimit"}
_HELD = {"JobHeldUser", "JobHeldAdmin", "launch failed requeued held"}


def why_pending(reasons: Iterable[str]) -> str:
    """One line on the jobs that wait.

    Args:
        reasons: Reason of each, as `squeue --format=%r` says it.

    Returns:
        The most frequent reasons, and what to do about the first that waiting does not end; empty: no job waits.
    """
    counts = Counter(reasons).most_common()
    if not counts:
        return ""
    listed = ", ".join(f"{reason} ({count})" for reason, count in counts[:3])
    return f"squeue says: {listed}; {_advice([reason for reason, _ in counts])}"


def _advice(reasons: list[str]) -> str:
    stuck = [reason for reason in reasons if reason not in _BUSY | _LATER]
    if not stuck:
        return "they wait for others: nothing is wrong" if _LATER & {*reasons} else "the cluster is busy: they wait"
    if stuck[0] in _HELD:
        return "held jobs wait until scontrol release JOB, with a number that squeue lists"
    return (
        f"{stuck[0]} may never change: press Ctrl-C, correct --launcher-config, and give the command again "
        "(scontrol show job JOB says what a job asks for)"
    )

"""The runs that several facts share: lag 16 at a rate where TIS was seen to fall and VCPO was not."""

from __future__ import annotations

from .cells import Block

RATES = {"walk": 8e-4, "chain": 1.6e-3}
"""Per task; from one seed of 120 updates in the calibration study, where TIS fell at lag 16 and VCPO did not."""
LAG = 16
TIS, VCPO, OPOB_ALONE, ESS_ALONE = "tis", "vcpo", "vcpo(ess=off)", "vcpo(baseline=group)"
TWICE = 600
"""Updates of the runs that are expected to fall: twice the budget, so that recoveries are seen."""


def long_runs(task: str) -> Block:
    """Uncorrected and TIS at lag, over twice the budget. Judged over the first 300 updates unless said otherwise."""
    return Block(("reinforce", TIS), task, (LAG,), RATES[task], steps=TWICE)


def synchronous(task: str) -> Block:
    """The same rate without lag."""
    return Block(("reinforce",), task, (0,), RATES[task])


def vcpo(task: str) -> Block:
    """VCPO at the same lag and rate."""
    return Block((VCPO,), task, (LAG,), RATES[task])


def halves(task: str) -> Block:
    """The two halves of VCPO."""
    return Block((OPOB_ALONE, ESS_ALONE), task, (LAG,), RATES[task])


def everything() -> tuple[Block, ...]:
    """All of these runs, on all tasks."""
    return tuple(make(task) for task in RATES for make in (long_runs, synchronous, vcpo, halves))

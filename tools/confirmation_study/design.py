"""The registered statements: docs/studies/confirmation/registration.md says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vcpo_bench.analysis.prediction.panel import MATCH

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"
FOLDER = STUDIES / "confirmation"
NEW, KNOWN = "phase/second", "phase"
"""Where the updates of the seeds that are asked ship, and of those that the statements come from."""
ASKED = range(8, 16)
LEAD = 20
LEVEL = 0.05
MARGIN = 0.05
BAR = 0.6
LEAST_FAILURES, LEAST_SEEDS = 15, 6
"""With fewer failed runs, or seeds that have one, a statement gets no word."""
REPLICATIONS = 10_000
ANY, SAME = tuple(MATCH), (*MATCH, "method")
"""What a control shares with its case: task, regime and lag; and the method too."""
BLIND = ("walk", "reinforce")
"""Where ESS ranked failures worst, of the methods and tasks with at least 8 failures that can be read."""

Kind = Literal["more", "less", "equivalent"]


@dataclass(frozen=True)
class Area:
    """An AUROC: which failed runs, which controls, by which signal.

    Attributes:
        signal: Name of the signal; higher scores are more dangerous.
        match: Columns in which a control agrees with its case.
        task: Of the failed runs; empty: any.
        method: Of the failed runs; empty: any.
        others: The failed runs are those of every other method of the task instead.
        elsewhere: Controls are of other seeds only.
    """

    signal: str
    match: Sequence[str] = ANY
    task: str = ""
    method: str = ""
    others: bool = False
    elsewhere: bool = False

    def like(self, other: Area) -> bool:
        """Whether another differs in its signal only."""
        return replace(self, signal=other.signal) == other


@dataclass(frozen=True)
class Statement:
    """One number and what is said of it.

    Attributes:
        name: In tables.
        text: What is stated, in words.
        area: An AUROC.
        less: What is taken from it: another AUROC, or a bar.
        kind: That the difference is above 0, below 0, or within `MARGIN` of it.
    """

    name: str
    text: str
    area: Area
    less: Area | float
    kind: Kind


def _at(signal: str, others: bool = False) -> Area:
    return Area(signal, ANY, *BLIND, others)


PRIMARY = Statement(
    "blind",
    "among runs of any method, ESS ranks the failures of `reinforce` on `walk` less well than those of other methods",
    _at("ess"),
    _at("ess", others=True),
    "less",
)
_SIGHTED = Statement(
    "sighted within",
    "among runs of `reinforce` alone ESS tells its failures on `walk`: AUROC above 0.6",
    Area("ess", SAME, *BLIND),
    BAR,
    "more",
)
_WITHIN = Statement(
    "learning rate within a method",
    "among runs of one method the learning rate ranks better than ESS",
    Area("ess", SAME),
    Area("lr", SAME),
    "less",
)
SECONDARY = (
    Statement(
        "KL blind too",
        "among runs of any method, the KL ranks the failures of `reinforce` on `walk` less well than those of others",
        _at("kl"),
        _at("kl", others=True),
        "less",
    ),
    Statement(
        "reward sees there",
        "among runs of any method, a low training reward ranks the failures of `reinforce` on `walk` better than ESS",
        _at("reward_low"),
        _at("ess"),
        "more",
    ),
    _SIGHTED,
    Statement(
        "tells within a method",
        "among runs of one method ESS tells which fail: AUROC above 0.6",
        Area("ess", SAME),
        BAR,
        "more",
    ),
    Statement(
        "tells over methods",
        "among runs of any method ESS tells which fail: AUROC above 0.6",
        Area("ess"),
        BAR,
        "more",
    ),
    _WITHIN,
    Statement(
        "learning rate over methods",
        "among runs of any method ESS ranks better than the learning rate",
        Area("ess"),
        Area("lr"),
        "more",
    ),
    Statement(
        "KL over methods",
        "among runs of any method ESS and the KL are equivalent within 0.05",
        Area("ess"),
        Area("kl"),
        "equivalent",
    ),
    Statement(
        "fall of the reward over methods",
        "among runs of any method ESS ranks better than a drop of the training reward",
        Area("ess"),
        Area("reward_drop"),
        "more",
    ),
)
EVERY = (PRIMARY, *SECONDARY)
SIGHTED = _SIGHTED.name
ELSEWHERE = replace(_WITHIN, area=replace(_WITHIN.area, elsewhere=True), less=Area("lr", SAME, elsewhere=True))
"""The same with controls of other seeds: a search hardly ever goes back above a rate that its seed failed at."""

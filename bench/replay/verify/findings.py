"""From gaps to findings: an exact test with a known false-alarm rate, and what the false weights seem to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Gaps = NDArray[np.float64]

ROUNDING = 1e-5
"""Nats per token within which float32 agrees with itself: no gap up to here is evidence of anything."""
_ALMOST_ALL = 0.9
"""Share of the trajectories from which something is said of all of them."""


class TooFewHonestError(ValueError):
    """Even the worst outcome could not reach the level of a test."""


def p_value(tested: int, honest: int, above: int) -> float:
    """Probability that so many of the tested gaps exceed every honest one, if all are exchangeable.

    The `above` largest of all `tested + honest` values are then any of them with equal probability (Rosenbaum's test).
    It assumes no distribution. Ties make it smaller than stated.

    Args:
        tested: Number of gaps in question.
        honest: Number of gaps of responses that are known to come from the declared weights.
        above: How many of the former exceed the largest of the latter.
    """
    p = 1.0
    for i in range(above):
        p *= (tested - i) / (tested + honest - i)
    return p


@dataclass(frozen=True, slots=True)
class VersionVerdict:
    """What was found of the responses that declare one version.

    Attributes:
        what: What was tested: `recorded` or `canary`, and the declared version.
        rows: Numbers of the trajectories that lie above every honest gap.
        checked: Number of trajectories tested.
        largest: Largest gap, in nats per token (root mean square over the tokens of a trajectory).
        honest: Largest honest gap, or the rounding of float32 if that is larger.
        p: See `p_value`.
        level: Largest `p` that counts as false.
        cause: What the false weights seem to be.
    """

    what: str
    rows: tuple[int, ...]
    checked: int
    largest: float
    honest: float
    p: float
    level: float
    cause: str = ""

    @property
    def false(self) -> bool:
        """Whether the declared version is not that of the weights that sampled."""
        return self.p <= self.level

    def text(self) -> str:
        """One line."""
        gaps = f"largest gap {self.largest:.2g}, honest {self.honest:.2g} nats per token"
        if not self.false:
            return f"{self.what}: true ({_counted(self.checked)}, {gaps})"
        count = f"{len(self.rows)} of {_counted(self.checked)} above every honest one"
        return f"{self.what} is FALSE: {count} ({gaps}, p = {self.p:.0e}); {self.cause}"


def judge(what: str, gaps: Gaps, honest: Gaps, level: float) -> VersionVerdict:
    """Test the gaps of trajectories against honest ones.

    Args:
        what: Named in the finding.
        gaps: [n], one per trajectory. One that is not finite is above everything.
        honest: [m].
        level: Largest p-value that counts as false: the false-alarm rate of this test.

    Raises:
        TooFewHonestError: There are too few gaps for any outcome to reach the level.
    """
    if p_value(len(gaps), len(honest), len(gaps)) > level:
        raise TooFewHonestError(f"{len(gaps)} trajectories against {len(honest)} honest ones cannot reach {level:g}")
    bound = max(float(honest.max()), ROUNDING)
    rows = tuple(np.flatnonzero(~(gaps <= bound)).tolist())
    return VersionVerdict(
        what, rows, len(gaps), float(gaps.max()), bound, p_value(len(gaps), len(honest), len(rows)), level
    )


def explained(finding: VersionVerdict, declared: int, others: Mapping[int, Gaps]) -> VersionVerdict:
    """The finding with the versions that fit what lies above.

    Args:
        finding: Of a false version.
        declared: The version.
        others: Gaps of the same trajectories under the weights of other versions.
    """
    rows = list(finding.rows)
    fits = {version: int((gaps[rows] <= finding.honest).sum()) for version, gaps in others.items()}
    best = max(fits, key=lambda version: (fits[version], -abs(version - declared)), default=declared)
    if fits.get(best, 0) < _ALMOST_ALL * len(rows):
        return replace(finding, cause="no stored version fits: part of a push, a stale cache, or other weights")
    if len(rows) >= _ALMOST_ALL * finding.checked:
        return replace(finding, cause=f"version {best} sampled them: the push of {declared} did not arrive")
    return replace(
        finding, cause=f"version {best} sampled {spans(rows)}: a part of the sampler, such as a rank, is behind"
    )


def spans(rows: Sequence[int]) -> str:
    """Row numbers as text: `trajectories 0-3, 8`."""
    parts, begin = list[str](), 0
    for place, row in enumerate(rows):
        if place + 1 == len(rows) or rows[place + 1] != row + 1:
            parts.append(str(row) if row == rows[begin] else f"{rows[begin]}-{row}")
            begin = place + 1
    return f"trajectories {', '.join(parts)}"


def _counted(count: int) -> str:
    return f"{count} trajectory" if count == 1 else f"{count} trajectories"

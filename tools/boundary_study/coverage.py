"""How often intervals of the boundary study cover the truth, in simulated studies of few places.

    python tools/boundary_study/coverage.py     # writes coverage.csv, which the registration shows; minutes

A simulated group has a true AUROC of its own. Its places share seeds: their fates, and half the variance of their
scores. Scores are normal, about half of the 32 seeds of a place fail. What is to be covered is the mean AUROC of all
groups that could have been drawn; by the interval of one task, the mean of the groups that were.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from boundary_study.design import SEEDS
from boundary_study.tables import FOLDER
from boundary_study.verdicts import BAR
from vcpo_bench.analysis.prediction.landmarks import draws_of

Array = NDArray[np.float64]

COVERAGE = FOLDER / "coverage.csv"
LAYOUTS = ((1,) * 8, (2, 2, 2, 1, 1), (2, 2, 2, 2, 1, 1, 1, 1), (3, 3, 2, 2, 3, 3, 2, 2, 2, 2))
"""How many places each group has; the last is the whole study."""
SPREADS = (0.0, 0.4, 0.8)
"""Standard deviation between groups of the shift of scores that fail, in standard deviations of scores."""
STUDIES, DRAWS = 2000, 200
ONE_TASK = 4
"""Groups of a task."""


def coverage_table(studies: int = STUDIES, draws: int = DRAWS) -> pd.DataFrame:
    """One row per layout and spread.

    Returns:
        Columns `places`, `groups`, `spread` (standard deviation of the true AUROC between groups), and the share of
        studies whose 95% interval covers: `bootstrap_of_places` and `bootstrap_of_groups` (percentile, two levels),
        `t_over_groups`, `one_task_seeds_only`.
    """
    return pd.DataFrame([_row(layout, spread, studies, draws) for layout in LAYOUTS for spread in SPREADS])


def _row(layout: tuple[int, ...], spread: float, studies: int, draws: int) -> dict[str, float]:
    random = np.random.default_rng(0)
    shift = special.ndtri(BAR) * np.sqrt(2 + spread**2) + spread * random.normal(size=(studies, len(layout)))
    truth = special.ndtr(shift / np.sqrt(2))
    weights = [draws_of(len(SEEDS), draws, seed=group) for group in range(len(layout))]
    found = [_group(one, places, weight, random) for one, places, weight in zip(shift.T, layout, weights, strict=True)]
    areas, drawn = np.concatenate([one for one, _ in found]), np.concatenate([one for _, one in found])
    owner = np.repeat(np.arange(len(layout)), layout)
    means, mean_drawn = (
        np.stack([one[owner == group].mean(axis=0) for group in range(len(layout))]) for one in (areas, drawn)
    )
    row = {"places": len(owner), "groups": len(layout), "spread": float(truth.std())}
    row["bootstrap_of_places"] = _covered(_two_levels(drawn, random), BAR)
    row["bootstrap_of_groups"] = _covered(_two_levels(mean_drawn, random), BAR)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    reach = special.stdtrit(len(means) - 1, 0.975) * error
    row["t_over_groups"] = float((np.abs(means.mean(axis=0) - BAR) <= reach).mean())
    row["one_task_seeds_only"] = _covered(mean_drawn[:ONE_TASK].mean(axis=0), truth[:, :ONE_TASK].mean(axis=1))
    return row


def _group(shift: Array, places: int, weights: Array, draws: np.random.Generator) -> tuple[Array, Array]:
    """AUROC of each place of a group `[places, studies]`, and when its seeds are drawn again `[places, studies, B]`."""
    shape = (len(shift), len(SEEDS))
    failed, shared = draws.random(shape) < 0.5, draws.normal(size=shape)
    pairs = failed[:, :, None] & ~failed[:, None, :]
    areas, drawn = [], []
    for _ in range(places):
        own = draws.normal(size=shape)
        scores = (shared + own) / np.sqrt(2) + shift[:, None] * failed
        wins = ((scores[:, :, None] > scores[:, None, :]) & pairs).astype(float)
        number = (weights @ failed.T) * (weights @ ~failed.T)
        areas.append(wins.sum(axis=(1, 2)) / pairs.sum(axis=(1, 2)))
        with np.errstate(invalid="ignore"):
            drawn.append(((weights @ wins) * weights).sum(axis=2) / number.T)
    return np.array(areas), np.array(drawn)


def _two_levels(drawn: Array, random: np.random.Generator) -> Array:
    """Mean over units, drawn with replacement, each with seeds drawn anew: `[units, studies, B]` to `[studies, B]`."""
    units, _, draws = drawn.shape
    which = random.integers(units, size=(draws, units))
    inner = random.integers(draws, size=which.shape)
    return np.asarray(np.nanmean(drawn[which, :, inner], axis=1).T)


def _covered(drawn: Array, truth: float | Array) -> float:
    low, high = np.nanquantile(drawn, (0.025, 0.975), axis=1)
    return float(((low <= truth) & (truth <= high)).mean())


def main() -> None:
    """Write the table."""
    coverage_table().to_csv(COVERAGE, index=False, float_format="%.3f")


if __name__ == "__main__":
    main()

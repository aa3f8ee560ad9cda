"""What is left to run of a study that chooses each method's learning rate on a ladder, and judges the method there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd


class Runs(NamedTuple):
    """Runs that differ in their seeds alone."""

    method: str
    lag: int
    lr: float
    seeds: tuple[int, ...]


def runs_left(preset: Mapping[str, Mapping[str, Any]], ended: pd.DataFrame) -> Iterator[Runs]:
    """The runs of a design that a table lacks, in order; read the next one only when those before it are in the table.

    First every rung of every ladder, then more rungs where the best is at an end, then the seeds that judge.

    Args:
        preset: Of the design: `synchronous`, `choose` and `judge`.
        ended: What has ended: `method`, `staleness`, `lr`, `seed` and `outcome`.

    Yields:
        Runs that are missing, at least one seed each.
    """
    arms = [arm for name in ("synchronous", "choose") for arm in _arms(preset[name])]
    judging = _values(preset["judge"]["seeds"], int)
    ladders = [Runs(*arm, lr, seeds) for arm, rates, seeds in arms for lr in rates]
    yield from _missing(ladders, ended)
    for arm, _, seeds in arms:
        best, rates = _best(arm, seeds, ended)
        beyond = {min(rates): best / 2, max(rates): best * 2}
        if best in beyond:
            yield Runs(*arm, beyond[best], seeds)
    yield from _missing([Runs(*arm, _best(arm, seeds, ended)[0], judging) for arm, _, seeds in arms], ended)


def _arms(grid: Mapping[str, Any]) -> list[tuple[tuple[str, int], tuple[float, ...], tuple[int, ...]]]:
    """Method and lag, rates, and seeds of each arm of a grid."""
    rates, seeds = _values(grid["lr"], float), _values(grid["seeds"], int)
    return [((method, int(grid["staleness"])), rates, seeds) for method in _values(grid["methods"], str)]


def _values(text: object, kind: type[Any]) -> tuple[Any, ...]:
    return tuple(kind(one) for one in str(text).split(","))


def _missing(asked: list[Runs], ended: pd.DataFrame) -> Iterator[Runs]:
    done = set(ended[["method", "staleness", "lr", "seed"]].itertuples(index=False, name=None))
    for one in asked:
        if seeds := tuple(seed for seed in one.seeds if (*one[:3], seed) not in done):
            yield one._replace(seeds=seeds)


def _best(arm: tuple[str, int], seeds: tuple[int, ...], ended: pd.DataFrame) -> tuple[float, list[float]]:
    """The rate with the highest mean outcome over the seeds that choose, and all rates that all of them ran."""
    method, lag = arm
    mine = ended[(ended.method == method) & (ended.staleness == lag) & ended.seed.isin(seeds)]
    groups = mine.groupby("lr").outcome
    means = groups.mean()[groups.size() == len(seeds)]
    rates: list[float] = means.index.to_numpy(dtype=float).tolist()
    return rates[int(means.to_numpy().argmax())], rates

"""Whether a statement follows from the rows it names: its numbers, its names, and the group it speaks about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import pandas as pd

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?%?(?!\w)")
FIXED = (
    r"95% Wilson interval|95% interval|95th percentile|5% level|75% of|1/lag|\|TIS - 1\||exp\(-2 L K3\)|1,000",
    r"\(0: start policy, 1: best synchronous training\)|25% above|below 0\.1\b|above 0\.9\b|at most 10% of",
    r"10 to 100 updates ahead|at least (2|8|15)\b|No run has a lag above 0|told apart from 0\b|<1%|p < 0\.001|Uno's C",
    r"fewer than [68]\b|from 6 (runs )?on\b|--seeds \d+|--lr [0-9e,.-]+ to show|four times in five",
    r"(lead|ESS|known|AUROC) 20\b|^20 updates|depth 0\.\d, \d evaluations",
)
"""What sentences always say, whatever was measured."""


def numbers_of(text: str, names: Iterable[str]) -> list[str]:
    """The measured numbers in a sentence: without its fixed phrases and without digits inside names."""
    for phrase in FIXED:
        text = re.sub(phrase, " ", text)
    for name in sorted(set(names), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", " ", text)
    return NUMBER.findall(text)


def texts_in(rows: pd.DataFrame) -> set[str]:
    """Every string in the rows, those inside lists too."""
    return {one for column in rows for value in rows[column] for one in _flat(value) if isinstance(one, str)}


def values_in(rows: pd.DataFrame) -> list[float]:
    """Every number in the rows, those inside lists too, and those written as text such as a lag of `16`."""
    every = [one for column in rows for value in rows[column] for one in _flat(value)]
    return [float(one) for one in every if not isinstance(one, str) or re.fullmatch(r"-?\d+(\.\d+)?", one)]


def _flat(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def explained(token: str, values: Iterable[float]) -> bool:
    """Whether a printed number is one of the values, rounded as it is printed."""
    percent = token.endswith("%")
    mantissa, _, exponent = token.rstrip("%").partition("e")
    decimals = len(mantissa.partition(".")[2])
    half = 0.5 * 10.0 ** (int(exponent or 0) - decimals) / (100 if percent else 1)
    value = float(token.rstrip("%")) / (100 if percent else 1)
    return any(abs(abs(value) - abs(one)) <= half * (1 + 1e-9) + 1e-12 for one in values)


def unexplained(text: str, rows: pd.DataFrame, table: str) -> list[str]:
    """The numbers of a sentence that are neither in its rows nor computed from them as its table allows."""
    values = [*values_in(rows), *(DERIVED[table](rows) if table in DERIVED else ())]
    return [token for token in numbers_of(text, texts_in(rows)) if not explained(token, values)]


def foreign_names(text: str, rows: pd.DataFrame, known: Iterable[str]) -> list[str]:
    """Names of methods, tasks or signals in a sentence that are not in its rows."""
    own, found = {part for text in texts_in(rows) for part in (text, *text.split(", "))}, []
    for name in sorted(set(known) | own, key=len, reverse=True):
        pattern = rf"(?<![\w+(=-]){re.escape(name)}(?![\w+(=-])"
        if name not in own and re.search(pattern, text):
            found.append(name)
        text = re.sub(pattern, " ", text)
    return found


def lags_said(text: str) -> set[str]:
    """The one lag that a sentence speaks about, if it does."""
    return set(re.findall(r"^Lag (\d+)\b", text)) or set(re.findall(r"^Survival .*at lag (\d+)\b", text))


def _counts(values: pd.Series) -> Iterator[float]:
    yield from values.value_counts().astype(float)


def _events(rows: pd.DataFrame) -> Iterator[float]:
    yield len(rows)
    yield from _counts(rows["event"])
    if "unresolved" in rows:
        yield rows["unresolved"].sum()


def _ess(rows: pd.DataFrame) -> Iterator[float]:
    yield len(rows)
    if "starved" in rows:
        yield rows["starved"].mean()
    if "finite_batch" in rows:
        yield (rows["finite_batch"] > 1.25 * rows["limit"]).sum()


def _tails(rows: pd.DataFrame) -> Iterator[float]:
    above, below = (rows["low"] > rows["limit"]).sum(), (rows["high"] < rows["limit"]).sum()
    yield from (len(rows), above, below, len(rows) - above - below, rows["n"].median())


def _cells(rows: pd.DataFrame) -> Iterator[float]:
    yield len(rows)
    for column in ("method", "seed"):
        if column in rows:
            yield rows[column].nunique()
    if "method" in rows and "seed" in rows:
        seeds = rows.groupby(["task", "regime", "lr", "staleness", "method"])["seed"].nunique()
        yield from (seeds.min(), seeds.max())
    if "partial" in rows:
        yield rows["partial"].sum()


def _ranking(rows: pd.DataFrame) -> Iterator[float]:
    if "seeds" in rows:
        yield 2.0 ** (1 - rows["seeds"].min())


def _anchors(rows: pd.DataFrame) -> Iterator[float]:
    if "sync" in rows:
        yield from rows["sync"] - rows["start"]


def _runs(rows: pd.DataFrame) -> Iterator[float]:
    yield from rows.select_dtypes("number").sum()
    if "collapsed" in rows:
        failed = rows.groupby("method")[["collapsed", "started"]].sum()
        yield from (*failed["collapsed"], *failed["started"], (failed["collapsed"] == 0).sum())
        yield failed["collapsed"].max() / max(failed["collapsed"].sum(), 1)
    if "healthy" in rows:
        lost = rows["collapsed"] + rows["nan"]
        judged = rows.assign(lost=lost, several=lost + rows["healthy"] > 1).query("several")
        yield from (len(judged), ((judged["lost"] > 0) != (judged["healthy"] > 0)).sum())
        yield from ((lost > 0).sum(), (rows["healthy"] > 0).sum())


def _failures(rows: pd.DataFrame) -> Iterator[float]:
    yield from (len(rows), rows["onset"].median())


def _alarms(rows: pd.DataFrame) -> Iterator[float]:
    if "recall" in rows:
        yield from rows["recall"] * rows["n_collapsed"]


def _length(rows: pd.DataFrame) -> Iterator[float]:
    yield len(rows)


def _answers(rows: pd.DataFrame) -> Iterator[float]:
    """Differences in percent of the synchronous gain."""
    differences = rows.columns.intersection(["ahead", "ahead_low", "ahead_high", "margin"])
    yield from (100 * value for name in differences for value in rows[name])


DERIVED: dict[str, Callable[[pd.DataFrame], Iterator[float]]] = {
    "events": _events,
    "answers": _answers,
    "sensitivity": _length,
    "ess": _ess,
    "tails": _tails,
    "cells": _cells,
    "ranking": _ranking,
    "anchors": _anchors,
    "runs": _runs,
    "collapses": _failures,
    "alarms": _alarms,
}
"""What a sentence may compute from the rows of a table, besides quoting them."""

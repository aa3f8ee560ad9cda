"""What the page of the acting study says, in words made from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.wording import with_interval


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The registered questions, each with one line per task.

    Args:
        tables: Of `verdicts.made`.
    """
    contrasts = pd.concat([tables["primary"], tables["secondary"]], ignore_index=True)
    lines: list[str] = []
    for question, asked in contrasts.groupby("question", sort=False):
        lines += [f"**{question}**", ""]
        for task, own in asked.groupby("task", sort=False):
            lines.append(f"- `{task}`: {'; '.join(_difference(row) for row in own.to_dict('records'))}.")
        lines.append("")
    return "\n".join(lines)


def _difference(row: Mapping[Any, Any]) -> str:
    gap = with_interval(row["difference"], row["low"], row["high"])
    return f"{row['one']} minus {row['other']} {gap} (**{row['verdict']}**)"


def agreement(tables: Mapping[str, pd.DataFrame]) -> str:
    """In how many contrasts the second wave of seeds alone gives the verdict of all seeds, and where it does not.

    Args:
        tables: Of `verdicts.made`.
    """
    place = ["task", "one", "other"]
    whole = pd.concat([tables["primary"], tables["secondary"]]).set_index(place)["verdict"]
    seeds, alone = list(tables["waves"].groupby("wave", sort=False))[-1]
    verdicts = alone.set_index(place)["verdict"]
    other = verdicts[verdicts != whole[verdicts.index]]
    same = f"Seeds {seeds} alone give the verdict of all seeds in {len(whole) - len(other)} of {len(whole)} contrasts."
    rows = other.reset_index().to_dict("records")
    apart = [f"`{row['task']}`, {row['one']} minus {row['other']} ({row['verdict']})" for row in rows]
    return f"{same} They give another in: {'; '.join(apart)}." if apart else same

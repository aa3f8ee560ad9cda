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

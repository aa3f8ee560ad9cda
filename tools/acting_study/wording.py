"""What the page of the acting study says, in words made from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.intervals import LEVEL
from vcpo_bench.analysis.wording import with_interval


def answer(tables: Mapping[str, pd.DataFrame]) -> str:
    """The registered questions, each with one line per task, the one that was added last.

    Args:
        tables: Of `verdicts.made`.
    """
    contrasts = pd.concat([tables[name] for name in ("primary", "secondary", "added")], ignore_index=True)
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
    """In how many contrasts the second wave of seeds gives the verdict of the first, and that of all, and where not.

    Args:
        tables: Of `verdicts.made`.
    """
    place = ["task", "one", "other"]
    whole = pd.concat([tables["primary"], tables["secondary"]]).set_index(place)["verdict"]
    (old, first), (new, second) = ((name, own.set_index(place)) for name, own in tables["waves"].groupby("wave"))
    both = pd.DataFrame({"first": first["verdict"], "second": second["verdict"]}).loc[whole.index]
    same, part = int((both["first"] == both["second"]).sum()), int((whole == both["second"]).sum())
    said = (
        f"Seeds {new} alone give the verdict of seeds {old} alone in {same} of {len(whole)} contrasts, and in {part} "
        "that of all seeds, of which they are half."
    )
    rows = both[both["first"] != both["second"]].reset_index().to_dict("records")
    apart = [
        f"`{row['task']}`, {row['one']} minus {row['other']} ({row['first']}, then {row['second']})" for row in rows
    ]
    return f"{said} The two waves differ in: {'; '.join(apart)}." if apart else said


def by_rule(rule: pd.DataFrame) -> str:
    """How many runs fail by the written rule at the alarm and at other updates.

    Args:
        rule: Of `by_rule.rule_table`.
    """
    row = rule.iloc[-1]
    verdict = "undecided" if not row["p"] < LEVEL else "lower" if row["at_alarm"] < row["at_placebo"] else "higher"
    return (
        f"By the written rule {row['at_alarm']} of {row['seeds']} runs fail when `vcpo` begins at the alarm, and "
        f"{row['at_placebo']} of {row['seeds']} when it begins at a placebo time. In pairs: {row['only_at_alarm']} "
        f"fail at the alarm only, {row['only_at_placebo']} at the placebo time only (sign test, p = {row['p']:.3f}: "
        f"{verdict}). No test of this was registered."
    )

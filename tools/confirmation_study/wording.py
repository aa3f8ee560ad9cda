"""What the page of the confirmation says, made from its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vcpo_bench.analysis.wording import with_interval

from .design import EVERY, PRIMARY, SIGHTED, Statement
from .judging import TOO_FEW

_TEXTS = {one.name: one for one in EVERY}


def answer(new: pd.DataFrame) -> str:
    """One line per statement: its word first, then its numbers."""
    return "\n".join(_line(_TEXTS[row["statement"]], row) for row in new.to_dict("records")) + "\n"


def _line(statement: Statement, row: Mapping[Any, Any]) -> str:
    role = "Primary: " if statement is PRIMARY else ""
    if row["word"] == TOO_FEW:
        return f"- {role}**{TOO_FEW}**: {statement.text}. {row['failed']} failed runs of {row['seeds']} seeds."
    p = "p" if statement is PRIMARY else "adjusted p"
    value = with_interval(row["value"], row["low"], row["high"], 3)
    return (
        f"- {role}**{row['word']}**: {statement.text}. {row['first']:.3f} less {row['second']:.3f} is {value}, "
        f"{p} {row['p_holm']:.2g}."
    )


def beside(new: pd.DataFrame, known: pd.DataFrame, power: pd.DataFrame) -> pd.DataFrame:
    """The number of each statement on the known seeds and on the new ones, with the power that was expected."""
    old, expected = known.set_index("statement"), power.set_index("statement")
    rows = []
    for row in new.to_dict("records"):
        name = row["statement"]
        numbers = [with_interval(at["value"], at["low"], at["high"], 3) for at in (old.loc[name], row)]
        facts = {"statement": name, "seeds 0 to 7": numbers[0], "power": expected.loc[name, "power_first"]}
        facts |= {"power without seed 0": expected.loc[name, "power_first_without_0"]}
        counts = {"readable": row["readable"], "compared": row["failed"]}
        rows.append(facts | counts | {"seeds 8 to 15": numbers[1], "word": row["word"]})
    return pd.DataFrame(rows)


def meaning(new: pd.DataFrame) -> str:
    """What follows for an alarm, if anything does."""
    words = new.set_index("statement")["word"]
    if words[PRIMARY.name] == words[SIGHTED] == "confirmed":
        return (
            "ESS ranks the failures of one method worse than those of others when runs of all methods are compared, "
            "and tells them among runs of that method. **A threshold on ESS belongs to a method**: compare a run with "
            "healthy runs of its own.\n"
        )
    return "Not both were confirmed, so nothing follows here for the threshold of an alarm.\n"

"""The answers of two waves of seeds side by side, and what the page says of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from study_pages.markdown_table import markdown

from vcpo_bench.analysis.wording import listed, with_interval

from .tables import FOLDER

SECOND = FOLDER / "second"
ANSWERS = "answers.csv"
SEEDS = range(8, 16)
_VALUES = {"law": "exponent", "rate": "difference", "reward": "difference", "horizon": "exponent"}
_PLACES = {
    "law": ["task", "method"],
    "rate": ["task", "staleness", "against"],
    "reward": ["task", "staleness", "against"],
    "horizon": ["task", "method"],
}
QUESTIONS = {
    "law": "the exponent of the lag",
    "rate": "the largest rate of `vcpo` over its constant mean step",
    "reward": "the reward of `vcpo` at its largest rate",
}
"""Those with words; the horizon has none."""


def compared(found: Mapping[str, Mapping[str, pd.DataFrame]]) -> pd.DataFrame:
    """One row per question and place.

    Args:
        found: Per wave (`first`, `second`, `both`), per question, its table.

    Returns:
        Columns `question`, `task`, `method` (or what `vcpo` is compared with), `staleness` (NaN: all lags); per wave
        `WAVE`, `WAVE_low`, `WAVE_high` (95%) and `WAVE_word` (empty for the horizon).
    """
    rows = []
    for question, places in _PLACES.items():
        tables = {wave: tables[question].set_index(places) for wave, tables in found.items()}
        for place in tables["first"].index:
            at = dict(zip(places, place, strict=True))
            row: dict[str, Any] = {"question": question, "task": at["task"]}
            row |= {"method": at.get("method", at.get("against")), "staleness": at.get("staleness")}
            rows.append(
                row
                | {
                    name: value
                    for wave, table in tables.items()
                    for name, value in _part(wave, question, table.loc[place])
                }
            )
    return pd.DataFrame(rows)


def _part(wave: str, question: str, row: pd.Series[Any]) -> list[tuple[str, object]]:
    return [
        (wave, row[_VALUES[question]]),
        (f"{wave}_low", row["low"]),
        (f"{wave}_high", row["high"]),
        (f"{wave}_word", row.get("verdict", "")),
    ]


def agreement(answers: pd.DataFrame) -> str:
    """In how many places of each question the second wave gives the word of the first, and where it does not."""
    lines = []
    for question, words in QUESTIONS.items():
        own = answers[answers["question"] == question]
        same = own["first_word"] == own["second_word"]
        other = [
            f"{_where(row)} ({row['first_word']}, then {row['second_word']})" for row in own[~same].to_dict("records")
        ]
        rest = f"; other words: {listed(other)}" if other else ""
        lines.append(f"- {words[0].upper()}{words[1:]}: the same word in {int(same.sum())} of {len(own)} places{rest}.")
    return "\n".join(lines) + "\n"


def _where(row: Mapping[Any, Any]) -> str:
    lag = "" if pd.isna(row["staleness"]) else f" at lag {row['staleness']:.0f}"
    return f"`{row['method']}` on `{row['task']}`{lag}"


def table(answers: pd.DataFrame) -> str:
    """The numbers of both waves and of all seeds, as Markdown."""
    rows = [
        {"question": row["question"], "task": row["task"], "method": row["method"]}
        | {"lag": "" if pd.isna(row["staleness"]) else f"{row['staleness']:.0f}"}
        | {
            title: _shown(row, wave)
            for title, wave in (("seeds 0 to 7", "first"), ("seeds 8 to 15", "second"), ("all", "both"))
        }
        for row in answers.to_dict("records")
    ]
    return markdown(pd.DataFrame(rows))


def section(path: Path) -> str:
    """The part of the page about the second wave; nothing while it has no answers."""
    if not path.exists():
        return ""
    answers = pd.read_csv(path, keep_default_na=False, na_values=[""])
    return f"""## A second wave of seeds

Seeds 8 to 15, [registered](registration.md) before their first run and looked at when all were complete: no earlier
look has touched these answers. All above is of seeds 0 to 7.

{agreement(answers)}
An exponent of the horizon has no word. The rate is a difference in log2.

{table(answers)}
The runs are in [second/runs.csv](second/runs.csv), the numbers in [second/answers.csv](second/answers.csv), and
`second/updates/` has every recorded update. They were made by

    python tools/phase_study/run.py results/second --seeds 8-15
    python tools/phase_study/second.py results/second

What these seeds say of early warnings is asked in [confirmation](../confirmation/README.md).
"""


def _shown(row: Mapping[Any, Any], wave: str) -> str:
    word = row[f"{wave}_word"]
    number = with_interval(row[wave], row[f"{wave}_low"], row[f"{wave}_high"], 2)
    return f"{number} {word}".strip() if isinstance(word, str) else number

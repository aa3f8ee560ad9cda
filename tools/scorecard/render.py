"""The page of the scorecard and its table of verdicts, from the shipped tables."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from study_pages.markers import filled

from .cells import planned
from .fact import VERDICTS, Fact, Part, Verdict, combined
from .tables import Tables

Judged = list[tuple[Fact, list[Part]]]
TOOL = "tools/scorecard/page.py"
SIGNS: dict[Verdict, str] = {verdict: f"**{verdict}**" if verdict == "refuted" else verdict for verdict in VERDICTS}


def judged(facts: Sequence[Fact], tables: Tables) -> Judged:
    """All verdicts, by number of the fact."""
    return [(fact, fact.parts(tables)) for fact in sorted(facts, key=lambda fact: fact.number)]


def verdict_table(verdicts: Judged) -> pd.DataFrame:
    """One row per part of a fact: what `verdicts.csv` has."""
    rows = [
        {"fact": fact.number, "part": part.name, "verdict": part.verdict, "fact_verdict": combined(parts)}
        | {"value": part.value, "low": part.low, "high": part.high, "unit": part.unit, "figure": part.figure}
        | {"rule": fact.rule, "source": fact.source, "runs": runs_behind(fact)}
        for fact, parts in verdicts
        for part in parts
    ]
    return pd.DataFrame(rows)


def runs_behind(fact: Fact) -> str:
    """Which runs and pages a verdict rests on."""
    blocks = [
        f"{block.task} {', '.join(block.methods)}; {block.regime}; lag {', '.join(map(str, block.lags))}; rate "
        f"{block.lr:g}; {len(block.seeds)} seeds; {block.steps} updates of {block.prompts} prompts"
        for block in fact.blocks
    ]
    return " / ".join([*blocks, *(f"docs/{page}" for page in fact.pages)])


def summary(verdicts: Judged) -> str:
    """How many facts have which verdict, and which."""
    lines = ["| verdict | facts | which |", "|---" * 3 + "|"]
    for verdict in VERDICTS:
        numbers = [str(fact.number) for fact, parts in verdicts if combined(parts) == verdict]
        lines.append(f"| {SIGNS[verdict]} | {len(numbers)} | {', '.join(numbers)} |")
    return "\n".join(lines) + "\n"


def scores(verdicts: Judged) -> str:
    """Every fact with its parts."""
    lines = ["| | published | part | here | figure |", "|---" * 5 + "|"]
    for fact, parts in verdicts:
        for place, part in enumerate(parts):
            head = f"{fact.number} | {fact.statement} ({fact.source})" if place == 0 else " | "
            lines.append(f"| {head} | {part.name} | {SIGNS[part.verdict]} | {part.figure} |")
    return "\n".join(lines) + "\n"


def evidence(verdicts: Judged) -> str:
    """What each fact rests on."""
    lines = ["| | runs | rests on |", "|---" * 3 + "|"]
    for fact, _ in verdicts:
        lines.append(f"| {fact.number} | {len(planned(fact.blocks)) or ''} | {runs_behind(fact)} |")
    return "\n".join(lines) + "\n"


def page(text: str, facts: Sequence[Fact], tables: Tables) -> tuple[str, pd.DataFrame]:
    """The page with its tables made anew, and the table of verdicts."""
    verdicts = judged(facts, tables)
    made = {"summary": summary(verdicts), "scores": scores(verdicts), "evidence": evidence(verdicts)}
    return filled(text, made, TOOL), verdict_table(verdicts)

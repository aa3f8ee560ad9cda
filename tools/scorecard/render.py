"""The page of the scorecard and its table of verdicts, from the shipped tables."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from study_pages.markdown_table import markdown
from study_pages.markers import filled

from .cells import planned
from .evidence import cited, evidence, run_sets, runs_behind
from .fact import VERDICTS, Fact, Part, Verdict, combined
from .non_inferiority import non_inferiority, profile
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


def counted(verdicts: Judged) -> str:
    """How many facts have which verdict, all five of them, in one sentence."""
    found = [combined(parts) for _, parts in verdicts]
    counts = [f"{found.count(verdict)} {verdict}" for verdict in VERDICTS]
    return f"Of {len(found)} published facts: {', '.join(counts[:-1])}, {counts[-1]}.\n"


def summary(verdicts: Judged) -> str:
    """One short line per fact, which leads to its section."""
    lines = ["| | fact | verdict |", "|---" * 3 + "|"]
    lines += [
        f"| {fact.number} | [{fact.title}](#{anchor(fact)}) | {SIGNS[combined(parts)]} |" for fact, parts in verdicts
    ]
    return "\n".join(lines) + "\n"


def anchor(fact: Fact) -> str:
    """Where the heading of a fact is linked to; titles have letters, digits, spaces, commas and hyphens alone."""
    return f"{fact.number}-{fact.title}".lower().replace(",", "").replace(" ", "-")


def scores(verdicts: Judged, tables: Tables) -> str:
    """A section per fact: what was published, and what came out here."""
    names = run_sets([fact for fact, _ in verdicts])
    sections = [_section(fact, parts, cited(fact, names, tables)) for fact, parts in verdicts]
    notes = [_note(fact, parts, tables) for fact, parts in verdicts]
    return "\n".join(section + note for section, note in zip(sections, notes, strict=True))


def _note(fact: Fact, parts: Sequence[Part], tables: Tables) -> str:
    text = fact.note(tables) if fact.note and combined(parts) != "not run" else ""
    return f"\n{text}" if text else ""


def _section(fact: Fact, parts: Sequence[Part], behind: str) -> str:
    runs = f"{len(planned(fact.blocks))} runs: " if fact.blocks else ""
    lines = [f"### {fact.number}. {fact.title}", "", f"**Published:** {fact.statement} *{fact.source}*", ""]
    lines += [f"**Here:** {SIGNS[combined(parts)]} ({runs}{behind}).", ""]
    lines += ["| part | verdict | figure |", "|---|---|---|"]
    lines += [f"| {part.name} | {SIGNS[part.verdict]} | {part.figure} |" for part in parts]
    return "\n".join(lines) + "\n"


def page(text: str, facts: Sequence[Fact], tables: Tables) -> tuple[str, pd.DataFrame]:
    """The page with its tables made anew, and the table of verdicts."""
    verdicts = judged(facts, tables)
    made = {"counts": counted(verdicts), "summary": summary(verdicts), "scores": scores(verdicts, tables)}
    made["evidence"] = evidence(facts)
    timed = {"non_inferiority": non_inferiority(tables), "profile": profile(tables)}
    made |= {name: "Not run.\n" if times.empty else markdown(times) for name, times in timed.items()}
    return filled(text, made, TOOL), verdict_table(verdicts)

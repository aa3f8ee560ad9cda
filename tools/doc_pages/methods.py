"""The generated part of `docs/methods.md`: every method and part, from the catalog and the golden references."""

import json
from dataclasses import replace
from pathlib import Path

from doc_pages.marked import with_table
from vcpo_bench.adapters.recipes import TRAINERS, recipe
from vcpo_bench.methods import (
    Method,
    coefficient_curve,
    describe,
    draw_curve,
    geometry_of,
    method_names,
    parse_method,
    part_names,
)
from vcpo_bench.methods.assembly.describe import Description
from vcpo_bench.methods.core.component import SLOTS

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"


def overview(names: list[str]) -> list[str]:
    """The table of all methods."""
    lines = ["| method | kind | what it does | paper | year | where it acts | needs |", "|---|---|---|---|---|---|---|"]
    for name in names:
        facts = describe(name)
        spelled = f"`{name}`" + (f" = `{facts.expression}`" if facts.expression not in ("", name) else "")
        cells = (spelled, facts.acts_on, facts.summary, facts.reference, str(facts.year or ""), str(geometry_of(name)))
        escaped = [one.replace("|", "\\|") for one in (*cells, ", ".join(facts.needs))]
        lines.append(f"| {' | '.join(escaped)} |")
    return lines


def facts_of(facts: Description) -> list[str]:
    """Formula, parameters and differences of one method or part."""
    sentences = (f"{facts.summary[:1].upper()}{facts.summary[1:]}", facts.reference)
    lines = [" ".join(f"{one.removesuffix('.')}." for one in sentences), ""]
    lines += [f"    {facts.formula}", ""]
    if facts.parameters:
        lines += ["| parameter | default | legal |", "|---|---|---|"]
        legal = [(each.name, each.default, each.legal.replace("|", "\\|")) for each in facts.parameters]
        lines += [f"| `{name}` | {default} | {text} |" for name, default, text in legal]
        lines.append("")
    if facts.paper_parts:
        lines += [f"`{facts.name}:paper` adds `{facts.paper_parts}`.", ""]
    if facts.differences:
        lines += ["Where frameworks differ:", "", *(f"- {remark}" for remark in facts.differences), ""]
    return lines


def geometry() -> str:
    """A line per method that ships with where it acts, for listings."""
    return "".join(f"{name}\t{geometry_of(name)}\n" for name in method_names())


def section(name: str) -> list[str]:
    """One method with its curve."""
    facts = describe(name)
    curve = draw_curve(coefficient_curve(facts.expression), width=49, height=7)
    plot = ["Coefficient against ratio (`+` for A = 1, `-` for A = -1, drawn by size):", "", "```", *curve, "```", ""]
    return [f"### {name}", "", *facts_of(facts), in_trainers(name), "", *plot]


def in_trainers(name: str) -> str:
    """In which trainers a method can be had, and how."""
    ways: dict[str, list[str]] = {}
    for trainer in TRAINERS:
        ways.setdefault(recipe(parse_method(name), trainer).way, []).append(trainer)
    return "In your trainer: " + "; ".join(f"{way} ({', '.join(where)})" for way, where in ways.items()) + "."


def who_does_what() -> list[str]:
    """Which reference implementation each component was compared with, and how it is spelled here."""
    entries = {
        f"{entry['family']}:{entry['id']}": entry
        for entry in json.loads((GOLDEN / "index.json").read_text())["entries"]
    }
    found: dict[tuple[str, str], list[str]] = {}
    for key, spec in json.loads((GOLDEN / "mapping.json").read_text())["entries"].items():
        if "not_reproduced" in spec:
            continue
        method: Method = parse_method(spec["expression"])
        for part in (replace(method, extras=()), *method.extras):
            found.setdefault((part.name, entries[key]["repo"]), []).append(part.text())
    lines = ["| here | reference | spelled | entries |", "|---|---|---|---|"]
    for (name, repository), texts in sorted(found.items()):
        spelled = sorted(set(texts), key=lambda text: (-texts.count(text), text))
        shown = ", ".join(f"`{text}`" for text in spelled[:3]) + (", ..." if len(spelled) > 3 else "")
        lines.append(f"| {name} | {repository} | {shown} | {len(texts)} |")
    return lines


def exceptions() -> list[str]:
    """Entries without numbers, and cases where ours differs on purpose."""
    lines = []
    for key, spec in json.loads((GOLDEN / "mapping.json").read_text())["entries"].items():
        if "not_reproduced" in spec:
            lines.append(f"- `{key}`: {spec['not_reproduced']}")
        lines += [f"- `{key}`, case {case}: {reason}" for case, reason in spec.get("skip", {}).items()]
    return lines


def page() -> str:
    """The page with all methods and parts made anew."""
    names = method_names()
    lines = ["## All methods", "", *overview(names), "", "## Method by method", ""]
    for name in names:
        lines += section(name)
    lines += ["## Parts", ""]
    for slot in SLOTS:
        parts = [name for name in part_names() if describe(name).acts_on == slot and name not in names]
        if parts:
            lines += [f"### Slot: {slot}", ""]
        for name in parts:
            lines += [f"#### {name}", "", *facts_of(describe(name))]
    lines += ["## Who does what", "", "Compared number by number with these implementations (`tests/golden`).", ""]
    lines += [*who_does_what(), "", "Not compared, with the reason:", "", *exceptions()]
    return with_table("docs/methods.md", "\n".join(lines) + "\n")

"""BibTeX of this software and of the papers that methods come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import vcpo_bench
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import read_items
from vcpo_bench.records.code_state import code_state

_ARXIV = re.compile(r"(?P<name>[^;]*?)\s*(?P<number>[0-9]{4}\.[0-9]{5})")


class Bibliography(NamedTuple):
    """What the methods of some expressions are cited by.

    Attributes:
        entries: One text per source, each paper once, below the names that it stands for.
        by_number: arXiv numbers of the papers of which only the short name and the number are known here.
    """

    entries: list[str]
    by_number: list[str]


def software() -> str:
    """The entry of this software: its version, and the commit that ran where it is known."""
    state = code_state()
    changed = ", with changes" if state["uncommitted"] else ""
    fields = {
        "title": "{vcpo-bench}: a benchmark of stabilizers for asynchronous reinforcement learning of language models",
        "author": "{The vcpo-bench authors}",
        "year": "2026",
        "version": vcpo_bench.__version__,
        **({"note": f"Commit {state['commit']}{changed}"} if state["commit"] else {}),
    }
    return _entry("software", "vcpo_bench", fields)


def papers(expressions: Iterable[str]) -> Bibliography:
    """The papers behind some methods.

    What a method's page gives without an arXiv number, such as an implementation, is a comment. A paper that is not in
    the table of papers, such as that of a plug-in, has the short name and the number: the number finds the rest.

    Raises:
        UsageError: A name is unknown.
    """
    from vcpo_bench.methods.assembly.papers import known_papers

    notes: dict[str, list[str]] = {}
    entries: dict[str, str] = {}
    for name, reference in dict(pair for expression in expressions for pair in _named(expression)).items():
        for key, entry in _entries(name, reference):
            notes.setdefault(key, []).append(_comment(f"{name}: {reference or 'no paper'}"))
            entries.setdefault(key, entry)
    texts = ["\n".join([*notes[key], entry]).rstrip() for key, entry in entries.items()]
    return Bibliography(texts, [key for key, entry in entries.items() if entry and key not in known_papers()])


def _comment(text: str) -> str:
    """Text between entries: BibTeX knows no comments, and reads whatever follows an @ as an entry."""
    return f"% {text.replace('@', '(at)')}"


def _named(expression: str) -> Iterator[tuple[str, str]]:
    """Name and reference of a method and of each part of an expression."""
    from vcpo_bench.methods import METHODS

    for item in read_items(expression):
        kind = METHODS.entries.lookup(item.name.text)
        if kind is None:
            raise UsageError(METHODS.unknown(item.name.text))
        yield kind.name, str(kind.reference)


def _entries(name: str, reference: str) -> Iterator[tuple[str, str]]:
    """Key and entry of each paper of a reference; a reference without an arXiv number is its own key, with no entry."""
    from vcpo_bench.methods.assembly.papers import Paper, known_papers

    matches = list(_ARXIV.finditer(reference))
    if not matches:
        yield reference, ""
    for match in matches:
        number = match["number"]
        paper = known_papers().get(number) or Paper(match["name"].strip(" ;,") or name, authors="")
        fields = {"title": f"{{{paper.title}}}"}  # a second pair of braces keeps the capitals of names
        if paper.authors:
            fields["author"] = paper.authors
        fields |= {"year": f"20{number[:2]}", "eprint": number, "archiveprefix": "arXiv"}
        fields["url"] = f"https://arxiv.org/abs/{number}"
        yield number, _entry("misc", f"arxiv_{number.replace('.', '_')}", fields)


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    return "\n".join([f"@{kind}{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"])

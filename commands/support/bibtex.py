"""BibTeX of this software and of the papers that methods come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import vcpo_bench
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import read_items, unknown_name

_ARXIV = re.compile(r"(?P<name>[^;]*?)\s*(?P<number>[0-9]{4}\.[0-9]{5})")


class Paper(NamedTuple):
    """Title and authors of a paper, as CITATION.cff has them."""

    title: str
    authors: tuple[str, ...]


FULL = {
    "2602.17616": Paper(
        "Stable Asynchrony: Variance-Controlled Off-Policy RL for LLMs",
        ("Huang, Luke J.", "Zhang, Zhuoyang", "Hu, Qinghao", "Yang, Shang", "Han, Song"),
    ),
    "2602.10693": Paper(
        "VESPO: Variational Sequence-Level Soft Policy Optimization for Stable Off-Policy LLM Training",
        ("Shen, Guobin", "Zhao, Chenxiao", "Cheng, Xiang", "Huang, Lei", "Yu, Xing"),
    ),
}
"""The papers of which more than the number is recorded here."""


def software() -> str:
    """The entry of this software."""
    fields = {
        "title": "vcpo-bench: which stabilizer survives at your policy lag",
        "author": "{The vcpo-bench authors}",
        "year": "2026",
        "version": vcpo_bench.__version__,
    }
    return _entry("software", "vcpo_bench", fields)


def papers(expressions: Iterable[str]) -> list[str]:
    """The entries of the papers behind some methods, each paper once.

    What a method's page gives without an arXiv number, such as an implementation, is a comment. Of most papers only the
    short name and the number are recorded: the number finds the rest.

    Args:
        expressions: Method expressions, parts included.

    Raises:
        UsageError: A name is unknown.
    """
    entries: dict[str, str] = {}
    for expression in expressions:
        for name, kind in _classes(expression):
            for key, entry in _of(name, kind):
                entries.setdefault(key, entry)
    return list(entries.values())


def _classes(expression: str) -> Iterator[tuple[str, Any]]:
    """Name and class of a method and of each part of an expression."""
    from vcpo_bench.methods import METHODS

    for item in read_items(expression):
        kind = METHODS.entries.lookup(item.name.text)
        if kind is None:
            raise UsageError(unknown_name("method", item.name.text, METHODS.names()))
        yield kind.name, kind


def _of(name: str, kind: Any) -> Iterator[tuple[str, str]]:
    reference = str(kind.reference)
    found = list(_ARXIV.finditer(reference))
    if not found:
        yield reference, f"% {name}: {reference}"
    for one in found:
        number, short = one["number"], one["name"].strip(" ;,") or name
        paper = FULL.get(number)
        fields = {"title": paper.title if paper else short}
        if paper:
            fields["author"] = " and ".join(paper.authors)
        fields |= {"year": f"20{number[:2]}", "eprint": number, "archiveprefix": "arXiv"}
        yield number, _entry("misc", f"arxiv_{number.replace('.', '_')}", fields, note=f"{name}: {reference}")


def _entry(kind: str, key: str, fields: dict[str, str], note: str = "") -> str:
    lines = [f"% {note}"] if note else []
    lines += [f"@{kind}{{{key},", *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"]
    return "\n".join(lines)

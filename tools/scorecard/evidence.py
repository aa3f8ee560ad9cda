"""What the facts rest on: each set of runs has a name, R1, R2, ..., which the facts cite."""

from __future__ import annotations

from collections.abc import Sequence

from .cells import Block
from .fact import Fact
from .tables import Tables


def run_sets(facts: Sequence[Fact]) -> dict[Block, str]:
    """The names of the sets of runs, in the order in which facts by number first need them."""
    blocks = dict.fromkeys(block for fact in sorted(facts, key=lambda fact: fact.number) for block in fact.blocks)
    return {block: f"R{place}" for place, block in enumerate(blocks, start=1)}


def evidence(facts: Sequence[Fact]) -> str:
    """The table of the sets of runs."""
    heads = ("set", "task", "methods", "regime", "lag", "learning rate", "seeds", "updates", "prompts", "facts")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    ordered = sorted(facts, key=lambda fact: fact.number)
    for block, name in run_sets(facts).items():
        users = [str(fact.number) for fact in ordered if block in fact.blocks]
        cells = (
            *(name, f"`{block.task}`", ", ".join(f"`{method}`" for method in block.methods), f"`{block.regime}`"),
            *(", ".join(map(str, block.lags)), f"{block.lr:g}", str(len(block.seeds)), str(block.steps)),
            *(str(block.prompts), ", ".join(users)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cited(fact: Fact, names: dict[Block, str], tables: Tables) -> str:
    """The sets and tables that a fact rests on, for the page; a table that is not there yet is no link."""
    sets = [name for block, name in names.items() if block in fact.blocks]
    pages = [f"[{page}](../../{page})" if tables.page_exists(page) else f"`{page}`" for page in fact.pages]
    return ", ".join([*sets, *pages])


def runs_behind(fact: Fact) -> str:
    """The same spelled out, for `verdicts.csv`."""
    blocks = [
        f"{block.task} {', '.join(block.methods)}; {block.regime}; lag {', '.join(map(str, block.lags))}; learning "
        f"rate {block.lr:g}; {len(block.seeds)} seeds; {block.steps} updates of {block.prompts} prompts"
        for block in fact.blocks
    ]
    return " / ".join([*blocks, *(f"docs/{page}" for page in fact.pages)])

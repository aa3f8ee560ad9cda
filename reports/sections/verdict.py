"""The verdict: what was run, and what `analysis` says about it, in its own sentences."""

from __future__ import annotations

from vcpo_bench.reports.document import Prose, Sentence, sentence
from vcpo_bench.reports.formatting import count, listing, rate
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.study import Study


def verdict(study: Study, ledger: Ledger) -> list[Prose]:
    """What was run; who wins where, each sentence with its interval; what was lost."""
    kept = [one for one in study.comparison.text if not _belongs_elsewhere(one)]
    lost = [one for one in study.losses.text if not _belongs_elsewhere(one)]
    return [
        Prose([_extent(study), *_preliminary(study)]),
        statements(study, ledger, "compare", kept),
        statements(study, ledger, "collapse", lost),
    ]


def said_about(study: Study, ledger: Ledger, topic: str) -> list[Prose]:
    """The sentences of the comparison and of the losses that belong to a later section, if there are any."""
    mark = TOPICS[topic]
    compared = [one for one in study.comparison.text if any(word in one for word in mark)]
    lost = [one for one in study.losses.text if any(word in one for word in mark)]
    blocks = [statements(study, ledger, "compare", compared), statements(study, ledger, "collapse", lost)]
    return [block for block in blocks if block.sentences]


TOPICS = {
    "ranking": ("Rates chosen at",),
    "stability": ("stable rate",),
    "time": ("is first at", "An update of"),
    "survival": ("urvival", "versions of the rule"),
}
"""Words by which a sentence is known to belong to a later section; what has none of them is part of the verdict."""


def _belongs_elsewhere(text: str) -> bool:
    return any(word in text for words in TOPICS.values() for word in words)


def _preliminary(study: Study) -> list[Sentence]:
    running = int(study.cells["partial"].sum())
    text = (
        f"Preliminary: {running} of {count(len(study.cells), 'run')} not finished; they are shown as far as they got."
    )
    return [sentence(text, tone="bad")] if running else []


def _extent(study: Study) -> Sentence:
    cells = study.cells
    methods = count(len(study.methods), "method")
    lags = listing([str(lag) for lag in sorted(cells["staleness"].unique())])
    rates = listing([rate(lr) for lr in sorted(cells["lr"].unique())])
    tasks = listing([str(task) for task in sorted(cells["task"].unique())])
    seeds = count(cells["seed"].nunique(), "seed")
    text = f"{count(len(cells), 'training run')}: {methods} on {tasks}, lag {lags}, learning rate {rates}, {seeds}."
    return sentence(text)

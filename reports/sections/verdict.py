"""The verdict: what was run, and what ``analysis`` says about it, in its own sentences."""

from __future__ import annotations

from vcpo_bench.reports.document import Prose, Sentence, sentence
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections.judged import statements
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.words import count, listing, rate


def verdict(study: Study, ledger: Ledger) -> list[Prose]:
    """What was run; who wins where, each sentence with its interval; what was lost."""
    return [
        Prose([_extent(study), *_preliminary(study)]),
        statements(study, ledger, "compare", study.comparison.text),
        statements(study, ledger, "collapse", study.losses.text),
    ]


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

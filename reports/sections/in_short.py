"""The first screen: what was run, the one figure, the answer at each lag, and what to run next."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.answers import NEXT, in_short
from vcpo_bench.analysis.comparison.coverage import EXTENT, UNFINISHED
from vcpo_bench.reports.document import Block, Prose, sentence
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.report_section import ReportSection
from vcpo_bench.reports.sections.analysis_blocks import as_prose, statements
from vcpo_bench.reports.study import Study

MOST_ANSWERS = 4
"""Sentences that a first screen holds; with more lags, the other answers stand in the section Ranking."""


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """What was run; the figure; the answers; what comes next."""
    return [
        *statements(study, ledger, "coverage", EXTENT, UNFINISHED, bullets=False),
        *pictures(study, leading(study)),
        *_answers(study, ledger),
        *statements(study, ledger, "compare", NEXT, bullets=False),
    ]


def leading(study: Study) -> str:
    """The figure a report begins with: rewards as they are, where one task and one learning rate were run."""
    if len(study.scenes()) > 1 or study.cells["lr"].nunique() > 1:
        return "score-lag"
    return "reward-lag" if study.cells["staleness"].nunique() > 1 else "reward-steps"


def _answers(study: Study, ledger: Ledger) -> list[Prose]:
    """The answer at each lag, or how its tasks disagree; with many lags those at the first, a middle and the last."""
    told = as_prose(ledger, "compare", in_short(study.findings("compare")))
    if not told or len(told[0].sentences) <= MOST_ANSWERS:
        return told
    every = told[0].sentences
    few = [every[0], every[len(every) // 2], every[-1]]
    return [
        Prose(few, bullets=True),
        Prose([sentence(f"The section Ranking has the answers at all {len(every)} lags.")]),
    ]


SECTIONS = (ReportSection("in-short", "In short", 5, blocks, folded=False),)

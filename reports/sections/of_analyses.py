"""Sections that are statements, figures and tables of the analyses, one after another."""

from __future__ import annotations

from vcpo_bench.analysis.collapse.sentences import SURVIVAL
from vcpo_bench.analysis.comparison.answers import ANSWER, BY_TASK, DISAGREEMENT
from vcpo_bench.analysis.comparison.coverage import THREAT
from vcpo_bench.analysis.comparison.effect_sentences import ABLATION, STABILITY, TIME
from vcpo_bench.analysis.comparison.sentences import RANKING, TUNING
from vcpo_bench.analysis.diagnostics.weight_sentences import ESS, KL, TAILS
from vcpo_bench.analysis.findings import NOTE
from vcpo_bench.reports.document import Block
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.catalog import pictures
from vcpo_bench.reports.report_section import Blocks, ReportSection
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison_tables import comparison_tables
from vcpo_bench.reports.sections.in_short import MOST_ANSWERS, leading
from vcpo_bench.reports.study import Study


def _ranking(study: Study, ledger: Ledger) -> list[Block]:
    found = study.findings("compare")
    several = len(found.about(ANSWER)) > MOST_ANSWERS or found.about(DISAGREEMENT)
    answers = [ANSWER] if several else []  # else all of them stand on the first screen
    return [
        *statements(study, ledger, "compare", BY_TASK, *answers, RANKING, TUNING, NOTE),
        *([] if leading(study) == "score-lag" else pictures(study, "score-lag")),
        *comparison_tables(study, ledger, "ranking"),
        *pictures(study, "profiles"),
        *comparison_tables(study, ledger, "pairs", "choices"),
    ]


def _survival(study: Study, ledger: Ledger) -> list[Block]:
    return [*statements(study, ledger, "collapse", SURVIVAL), *pictures(study, "survival")]


def _threats(study: Study, ledger: Ledger) -> list[Block]:
    """What makes cells hard to compare, then what the study as a whole lacks."""
    return [*statements(study, ledger, "caveats", NOTE), *statements(study, ledger, "coverage", THREAT)]


def _reward_lag(study: Study, ledger: Ledger) -> list[Block]:
    return [] if leading(study) == "reward-lag" else [*pictures(study, "reward-lag")]


def _ess_curves(study: Study, ledger: Ledger) -> list[Block]:
    return [
        *statements(study, ledger, "weights", ESS, KL, TAILS, NOTE),
        *pictures(study, "ess-steps", "log-weight-steps", "k-hat"),
    ]


def _stability(study: Study, ledger: Ledger) -> list[Block]:
    return [
        *statements(study, ledger, "compare", STABILITY),
        *pictures(study, "stability"),
        *comparison_tables(study, ledger, "stable_rates", "frontier"),
    ]


def _ablation(study: Study, ledger: Ledger) -> list[Block]:
    return [
        *statements(study, ledger, "compare", ABLATION),
        *comparison_tables(study, ledger, "ablation", "step_controls"),
    ]


def _time(study: Study, ledger: Ledger) -> list[Block]:
    """Time to target and to non-inferiority, phases of an update, and cost."""
    return [
        *statements(study, ledger, "compare", TIME),
        *comparison_tables(study, ledger, "targets", "non_inferiority"),
        *pictures(study, "phases"),
        *comparison_tables(study, ledger, "cost"),
    ]


def _figures(*names: str) -> Blocks:
    return lambda study, ledger: [*pictures(study, *names)]


SECTIONS = (
    ReportSection("ranking", "Ranking", 30, _ranking, folded=False),
    ReportSection("learning-curves", "Learning curves", 50, _figures("reward-steps"), folded=False),
    ReportSection(
        "ess",
        "ESS and collapse",
        60,
        _figures("ess-map", "ess-vs-collapse", "ess-vs-collapse-runs", "ess-vs-collapse-roc"),
        folded=False,
    ),
    ReportSection("survival", "Survival", 70, _survival, folded=False),
    ReportSection("threats", "Threats to validity", 120, _threats, folded=False),
    ReportSection("reward-lag", "Reward against lag", 128, _reward_lag),
    ReportSection("ess-curves", "Effective sample size", 130, _ess_curves),
    ReportSection("stability", "Stability by lag and learning rate", 150, _stability),
    ReportSection("ablation", "Which part does the work", 155, _ablation),
    ReportSection(
        "divergence", "Divergence and step size", 160, _figures("kl-steps", "entropy-steps", "step-scale-steps")
    ),
    ReportSection("realized-lag", "Realized lag", 170, _figures("realized-lag")),
    ReportSection("time", "Time to target and cost", 190, _time),
)

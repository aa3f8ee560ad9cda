"""The order of a report. Each entry is a section: its anchor, its title, and the file of `sections/` that fills it."""

from __future__ import annotations

from collections.abc import Callable

from vcpo_bench.reports.document import Block, Document, Section
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.sections import (
    ablation,
    divergence,
    episodes,
    ess,
    ess_curves,
    failures,
    gradients,
    learning_curves,
    lm_eval,
    prediction,
    probe,
    protocol,
    ranking,
    realized_lag,
    reward_lag,
    scoreboard,
    stability,
    survival,
    threats,
    time,
    verdict,
)
from vcpo_bench.reports.study import Study

ORDER: tuple[tuple[str, str, Callable[[Study, Ledger], list[Block]]], ...] = (
    ("verdict", "Verdict", verdict.blocks),
    ("scoreboard", "Scoreboard", scoreboard.blocks),
    ("ranking", "Ranking", ranking.blocks),
    ("reward-lag", "Reward against lag", reward_lag.blocks),
    ("learning-curves", "Learning curves", learning_curves.blocks),
    ("ess", "ESS and collapse", ess.blocks),
    ("prediction", "Could it have been predicted?", prediction.blocks),
    ("ess-curves", "Effective sample size", ess_curves.blocks),
    ("gradients", "Gradients", gradients.blocks),
    ("survival", "Survival", survival.blocks),
    ("stability", "Stability by lag and learning rate", stability.blocks),
    ("divergence", "Divergence and step size", divergence.blocks),
    ("realized-lag", "Realized lag", realized_lag.blocks),
    ("lm-eval", "Scores by lm-eval", lm_eval.blocks),
    ("time", "Time to target and cost", time.blocks),
    ("ablation", "Which part does the work", ablation.blocks),
    ("probe", "Estimator probe", probe.blocks),
    ("episodes", "Example episodes", episodes.blocks),
    ("failures", "Failures", failures.blocks),
    ("protocol", "Protocol and environment", protocol.blocks),
    ("threats", "Threats to validity", threats.blocks),
)


def build(study: Study) -> Document:
    """The report of a study. Its pictures are drawn by whoever renders it, at that form's size."""
    ledger = Ledger()
    sections = [Section(anchor, title, blocks(study, ledger)) for anchor, title, blocks in ORDER]
    title = "vcpo-bench report: " + " + ".join(folder.resolve().name for folder in study.results.folders)
    return Document(title, sections, ledger)

"""The order of a report: which sections it has, and which figures answer their questions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vcpo_bench.reports.document import Block, Document, Picture, Section
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.curves import QUANTITIES, Quantity, trajectories
from vcpo_bench.reports.plots.lag_axis import realized_lag, reward_against_lag
from vcpo_bench.reports.plots.maps import ess_map, stability_map
from vcpo_bench.reports.plots.pareto_tail import pareto_k
from vcpo_bench.reports.plots.performance_profiles import profiles
from vcpo_bench.reports.plots.sheet import Plot, Sheet
from vcpo_bench.reports.plots.survival_and_onset import at_onset, survival
from vcpo_bench.reports.plots.update_time import phases
from vcpo_bench.reports.sections.analysis_blocks import statements
from vcpo_bench.reports.sections.comparison import compared
from vcpo_bench.reports.sections.example_episodes import episodes
from vcpo_bench.reports.sections.lm_eval_scores import lm_scores
from vcpo_bench.reports.sections.prediction import foretold
from vcpo_bench.reports.sections.probe import probe
from vcpo_bench.reports.sections.protocol_and_threats import failures, protocol, provenance, threats
from vcpo_bench.reports.sections.scoreboard import scoreboard
from vcpo_bench.reports.sections.verdict import said_about, verdict
from vcpo_bench.reports.study import Study

_QUANTITY = {quantity.name: quantity for quantity in QUANTITIES}
_Scene = Callable[[Study, Sheet, str, str], Plot | None]


def build(study: Study) -> Document:
    """The report of a study. Its pictures are drawn by whoever renders it, at that form's size."""
    ledger = Ledger()
    sections = [
        Section("verdict", "Verdict", [*verdict(study, ledger)]),
        Section("scoreboard", "Scoreboard", [scoreboard(study, ledger)]),
        Section("ranking", "At the best learning rate", _ranking(study, ledger)),
        Section("reward-lag", "Reward against lag", _scenes(study, reward_against_lag)),
        Section("learning-curves", "Learning curves", _curves(study, "reward-steps")),
        Section("ess", "ESS and collapse", [*_scenes(study, ess_map), Picture(partial(at_onset, study))]),
        Section("prediction", "Could it have been known?", foretold(study, ledger)),
        Section("ess-curves", "Effective sample size", _weights(study, ledger)),
        Section("gradients", "Gradient norms", _gradients(study, ledger)),
        Section("survival", "Survival", _survival(study, ledger)),
        Section("stability", "Stability by lag and learning rate", _stability(study, ledger)),
        Section(
            "divergence", "Divergence and step size", _curves(study, "kl-steps", "entropy-steps", "step-scale-steps")
        ),
        Section("realized-lag", "Realized lag", [Picture(partial(realized_lag, study), wide=True)]),
        Section("lm-eval", "Scores by lm-eval", [*lm_scores(study, ledger)]),
        Section("time", "Time to target and cost", _time(study, ledger)),
        Section("ablation", "Which part does the work", [*compared(study, ledger, "ablation", "step_controls")]),
        Section("probe", "Estimator probe", probe(study, ledger)),
        Section("episodes", "Example episodes", [*episodes(study)]),
        Section("failures", "Failures", [*failures(study)]),
        Section("protocol", "Protocol and environment", [protocol(study), provenance(study)]),
        Section("threats", "Threats to validity", [threats(study)]),
    ]
    title = "vcpo-bench report: " + " + ".join(folder.resolve().name for folder in study.results.folders)
    return Document(title, sections, ledger)


def _ranking(study: Study, ledger: Ledger) -> list[Block]:
    first, then = compared(study, ledger, "ranking"), compared(study, ledger, "pairs", "choices")
    return [*said_about(study, ledger, "ranking"), *first, Picture(partial(profiles, study)), *then]


def _survival(study: Study, ledger: Ledger) -> list[Block]:
    return [*said_about(study, ledger, "survival"), Picture(partial(survival, study), wide=True)]


def _weights(study: Study, ledger: Ledger) -> list[Block]:
    text = statements(study, ledger, "weights", study.weights.text)
    return [text, *_curves(study, "ess-steps", "log-weight-steps"), Picture(partial(pareto_k, study), wide=True)]


def _gradients(study: Study, ledger: Ledger) -> list[Block]:
    return [statements(study, ledger, "gradients", study.gradients.text), *_curves(study, "grad-norm-steps")]


def _stability(study: Study, ledger: Ledger) -> list[Block]:
    text = said_about(study, ledger, "stability")
    return [*text, *_scenes(study, stability_map, wide=True), *compared(study, ledger, "stable_rates", "frontier")]


def _time(study: Study, ledger: Ledger) -> list[Block]:
    first, then = compared(study, ledger, "targets"), compared(study, ledger, "cost")
    return [*said_about(study, ledger, "time"), *first, Picture(partial(phases, study)), *then]


def _scenes(study: Study, draw: _Scene, wide: bool = False) -> list[Block]:
    """A picture of each task and regime."""
    return [Picture(partial(_on_sheet, draw, study, task, regime), wide) for task, regime in study.scenes()]


def _on_sheet(draw: _Scene, study: Study, task: str, regime: str, sheet: Sheet) -> Plot | None:
    return draw(study, sheet, task, regime)


def _trajectories(quantity: Quantity, study: Study, sheet: Sheet, task: str, regime: str) -> Plot | None:
    return trajectories(study, sheet, quantity, task, regime)


def _curves(study: Study, *names: str) -> list[Block]:
    blocks: list[Block] = []
    for name in names:
        blocks += _scenes(study, partial(_trajectories, _QUANTITY[name]), wide=True)
    return blocks

"""Every figure by its name: what draws it, how wide it is, and which results it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import unknown_name
from vcpo_bench.reports.document import Picture
from vcpo_bench.reports.figure import Plot, Sheet
from vcpo_bench.reports.plots import paper_figures
from vcpo_bench.reports.plots.best_rate import score_at_best_rate
from vcpo_bench.reports.plots.curves import QUANTITIES, Quantity, trajectories
from vcpo_bench.reports.plots.lag_axis import realized_lag, reward_against_lag
from vcpo_bench.reports.plots.maps import ess_map, stability_map
from vcpo_bench.reports.plots.pareto_tail import pareto_k
from vcpo_bench.reports.plots.performance_profiles import profiles
from vcpo_bench.reports.plots.prediction import lead_time
from vcpo_bench.reports.plots.probe import estimator_probe
from vcpo_bench.reports.plots.roc import NEEDS, roc
from vcpo_bench.reports.plots.runs_before_failure import runs_before_failure
from vcpo_bench.reports.plots.sheet import figure_name
from vcpo_bench.reports.plots.survival_and_onset import at_onset, survival
from vcpo_bench.reports.plots.update_time import phases
from vcpo_bench.reports.study import Study

OfStudy = Callable[[Study, Sheet], Plot | None]
OfScene = Callable[[Study, Sheet, str, str], Plot | None]


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    Attributes:
        draw: Draws the one figure of a study; None: there is one of each task and regime.
        draw_scene: Draws that of a task and regime.
        wide: In a paper with two columns it needs both.
        needs: The results without which there is nothing to draw.
    """

    draw: OfStudy | None = None
    draw_scene: OfScene | None = None
    wide: bool = False
    needs: str = "what it shows"


def _curves(quantity: Quantity, study: Study, sheet: Sheet, task: str, regime: str) -> Plot | None:
    return trajectories(study, sheet, quantity, task, regime)


FIGURES: dict[str, FigureKind] = {
    "score-lag": FigureKind(score_at_best_rate, needs="runs at a lag above 0"),
    "profiles": FigureKind(profiles, needs="synchronous runs to normalize rewards by"),
    "reward-lag": FigureKind(draw_scene=reward_against_lag, needs="two lags"),
    **{one.name: FigureKind(draw_scene=partial(_curves, one), wide=True) for one in QUANTITIES},
    "ess-map": FigureKind(draw_scene=ess_map, needs="an ESS, and few enough methods for the height of the figure"),
    "ess-vs-collapse": FigureKind(at_onset, needs="a run that collapsed"),
    "ess-vs-collapse-runs": FigureKind(runs_before_failure, wide=True, needs="a run that collapsed"),
    "ess-vs-collapse-roc": FigureKind(roc, wide=True, needs=NEEDS),
    "survival": FigureKind(survival, wide=True, needs="a run that collapsed"),
    "stability": FigureKind(draw_scene=stability_map, wide=True, needs="two lags or two learning rates"),
    "auroc-lead": FigureKind(lead_time, wide=True, needs="enough collapsed and enough surviving runs"),
    "k-hat": FigureKind(pareto_k, wide=True, needs="trajectories: vcpo-bench run --record diagnostics"),
    "realized-lag": FigureKind(realized_lag, wide=True),
    "phases": FigureKind(phases, needs="recorded times"),
    "estimator-probe": FigureKind(estimator_probe, wide=True, needs="measurements of vcpo-bench lab probe"),
    "vespo-fig2-kernels": FigureKind(paper_figures.kernels),
    "vcpo-results-stack": FigureKind(paper_figures.results_stack, needs="runs at a lag above 0"),
    "vcpo-lag-sweep": FigureKind(paper_figures.lag_sweep, needs="runs of vcpo at two lags"),
    "vcpo-fig9-ablation": FigureKind(paper_figures.ablation, needs="vcpo, and variants of it"),
}
"""In the order in which a paper folder lists them. The last four are figures of papers, redrawn."""


def pictures(study: Study, *names: str) -> list[Picture]:
    """The figures of these kinds, yet to be drawn: one, or one of each task and regime.

    Raises:
        UsageError: A name is unknown.
    """
    return [picture for name in names for picture in _of_kind(study, name)]


def chosen(study: Study, names: list[str]) -> list[Picture]:
    """The figures that a user names: kinds, or one of several of a kind (`ess-map-walk`).

    Raises:
        UsageError: A name is unknown.
    """
    known = {picture.name: picture for picture in pictures(study, *FIGURES)}
    for name in names:
        if name not in FIGURES and name not in known:
            raise UsageError(unknown_name("figure", name, [*FIGURES, *known]))
    found = [pictures(study, name) if name in FIGURES else [known[name]] for name in names]
    return [picture for some in found for picture in some]


def _of_kind(study: Study, name: str) -> list[Picture]:
    kind = FIGURES[name]
    if kind.draw is not None:
        return [Picture(name, partial(kind.draw, study), kind.wide, kind.needs)]
    assert kind.draw_scene is not None
    return [
        Picture(figure_name(name, *scene), partial(_on_sheet, kind.draw_scene, study, *scene), kind.wide, kind.needs)
        for scene in study.scenes()
    ]


def _on_sheet(draw: OfScene, study: Study, task: str, regime: str, sheet: Sheet) -> Plot | None:
    return draw(study, sheet, task, regime)

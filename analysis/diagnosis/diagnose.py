"""`diagnose`: from a log to verdict, onset, order of signals, causes, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable

from vcpo_bench.analysis.diagnosis.causes.batch import length, zero_variance
from vcpo_bench.analysis.diagnosis.causes.curves import resume, train_eval_gap
from vcpo_bench.analysis.diagnosis.causes.policy import entropy, gradient
from vcpo_bench.analysis.diagnosis.causes.story import Story
from vcpo_bench.analysis.diagnosis.causes.weights import (
    engine_gap,
    lag_and_weights,
    lost_support,
    silent_anchor,
    support_lost_at,
)
from vcpo_bench.analysis.diagnosis.compare import compare
from vcpo_bench.analysis.diagnosis.departures import find_departures
from vcpo_bench.analysis.diagnosis.diagnosis import Cause, Diagnosis, Unseen
from vcpo_bench.analysis.diagnosis.outcome import blind, read_outcome
from vcpo_bench.analysis.logs.names import columns, frameworks
from vcpo_bench.analysis.logs.run import LoggedRun

CAUSES: tuple[Callable[[Story], Cause | None], ...] = (
    lost_support,
    resume,
    lag_and_weights,
    engine_gap,
    length,
    entropy,
    gradient,
    zero_variance,
    train_eval_gap,
    silent_anchor,
)

WANTED = (
    ("eval_reward",),
    ("entropy",),
    ("grad_norm",),
    ("length_mean",),
    ("truncated_share",),
    ("zero_variance_share", "reward_std"),
    ("kl_mu_theta_k3", "kl_mu_theta_k1"),
    ("logp_gap", "prob_gap"),
    ("weight_mean", "chi2_seq"),
    ("ess_ratio",),
    ("lag_mean", "lag_max"),
)
"""What the causes need; of each line, one column is enough."""


def diagnose(run: LoggedRun, baseline: LoggedRun | None = None) -> Diagnosis:
    """What happened to a run.

    The verdict comes from the reward only. Signals are put in order and weighed as causes; none of them is a verdict.

    Args:
        run: Of `read_run`.
        baseline: A reference run, such as one that went well; its signals are compared at the same steps.
    """
    outcome, departures = read_outcome(run), find_departures(run)
    story = Story(run, outcome, departures)
    lost = support_lost_at(story)
    if lost is not None and outcome.verdict in ("healthy", "stall", "dip"):
        outcome = blind(outcome, lost)
        story = Story(run, outcome, departures)
    causes = [found for cause in CAUSES if (found := cause(story)) is not None]
    ranked = sorted(
        causes, key=lambda one: (one.standing != "probable", len(one.against) - len(one.evidence), one.since)
    )
    compared = compare(run, baseline) if baseline is not None else ()
    return Diagnosis(run, outcome, departures, tuple(ranked), _unseen(run), compared)


def _unseen(run: LoggedRun) -> tuple[Unseen, ...]:
    known = frameworks().get(run.framework)
    switches = known.switches if known is not None else {}
    missing = []
    for names in WANTED:
        if not any(name in run.series for name in names):
            switch = next((switches[name] for name in names if name in switches), "")
            missing.append(Unseen(names[0], columns()[names[0]].label, switch))
    return tuple(missing)

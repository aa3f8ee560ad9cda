"""Causes in the weights between the sampling policy mu and the trained policy theta."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vcpo_bench.analysis.diagnosis.causes.story import Case, Story
from vcpo_bench.analysis.diagnosis.diagnosis import LOST_SUPPORT, Cause, Departure
from vcpo_bench.analysis.logs.run import LoggedRun

LAG = ("lag_mean", "lag_max")
KL = ("kl_mu_theta_k3", "kl_mu_theta_k1")
SPREAD_UP = (*KL, "log_weight_var", "log_weight_max", "max_share", "pareto_k", "chi2_seq", "chi2_token")
SPREAD_DOWN = ("ess_ratio", "ess_ratio_used", "token_ess_ratio")
GAP_UP, GAP_DOWN = ("logp_gap", "prob_gap"), ("prob_correlation",)

LOST_CHI2 = -0.5
"""chi2 is E[w^2] - 1 and at least 0 where mu covers theta: far below 0, the sample has no weight left."""
LOST_WEIGHT = 0.2
"""E_mu[w] is 1 where mu covers theta; a mean below this over three rows has lost most of it."""
LOST_KL = 5.0
"""nats per token: the two policies agree on almost nothing."""
LOST_CORRELATION = 0.5
LOW_ESS = 0.1
"""ESS ratio of raw weights below which a few samples of a batch decide its update, also where it was never higher."""
OLD = 2.0
"""Versions from which on a lag that does not grow separates the policies as well: the more, the larger the updates.

Then a growing distance may be of the engine, too: what the log shows is that the lag did not grow with it."""
_ANCHOR_ROWS = 10
_LAG_NEAR = 30
_NOT_MU = 0.02
ZERO = 1e-6
"""What is not larger is 0, up to rounding."""


def lag_and_weights(story: Story) -> Cause | None:
    """The data grew too old for the weights."""
    case = Case(story, "lag and weights")
    lag = _changes(story, LAG)
    for one in [*lag, *_changes(story, SPREAD_UP, SPREAD_DOWN)]:
        case.take(one)
    known = [column for column in LAG if story.has(column)]
    low = None if story.fell("ess_ratio") else story.first_below("ess_ratio", LOW_ESS)
    case.past("ess_ratio", low, f"below {LOW_ESS:g}", "ESS down")
    if known and not lag and not _old(story):
        case.opposes(story.stayed(known[0]) or "the lag did not grow")
        if story.start(known[0]) <= 0:
            case.opposes("the data were fresh: the lag was 0")
        case.opposes(*[f"{story.moved(one)}, without the lag" for one in map(story.rose, GAP_UP) if one])
    case.opposes(*[story.stayed(column) for column in ("ess_ratio", "kl_mu_theta_k3")])
    return case.close()


def engine_gap(story: Story) -> Cause | None:
    """Engine and trainer give different probabilities under the same weights."""
    gap, lag = _changes(story, GAP_UP, GAP_DOWN), _changes(story, LAG)
    if lag and not gap:
        return None
    known = next(filter(story.has, LAG), "")
    flat = bool(known) and not lag and _usual(story, known) < story.start(known) + 1  # nor at the start
    evidence = [*gap, *(_changes(story, KL) if flat else ())]
    case = Case(story, "engine gap")
    for one in evidence:
        case.take(one)
    if evidence and flat:
        case.supports(min(one.step for one in evidence), f"{story.label(known)} did not grow with it")
    if evidence and (_old(story) if gap else not _on_policy(story)):
        case.opposes(
            f"the data are {_usual(story, known):.3g} versions old ({story.label(known)}): the gap holds that as well"
        )
    for late in lag:
        if any(abs(one.step - late.step) <= _LAG_NEAR for one in gap):
            case.opposes(f"the lag grew at the same time: {story.moved(late)}")
    case.opposes(*[story.stayed(column) for column in GAP_UP])
    return case.close()


def _changes(story: Story, up: Sequence[str], down: Sequence[str] = ()) -> list[Departure]:
    """The departures of columns that rose and of others that fell."""
    return [one for one in [*map(story.rose, up), *map(story.fell, down)] if one is not None]


def _usual(story: Story, column: str) -> float:
    """Median of the finite values of a column; NaN where there is none."""
    _, values = story.run.series[column].finite
    return float(np.median(values)) if values.size else float("nan")


def _old(story: Story) -> bool:
    """Whether the data were usually some versions old: by the mean, or else the largest lag, of a batch."""
    known = next(filter(story.has, LAG), "")
    return bool(known) and _usual(story, known) >= OLD


def _on_policy(story: Story) -> bool:
    """Whether the lag is logged and always 0: at a lag above 0 the KL also grows with the size of the updates."""
    known = [story.run.series[column].values for column in LAG if story.has(column)]
    return bool(known) and not any(np.nan_to_num(values).any() for values in known)


def lost_support(story: Story) -> Cause | None:
    """What mu samples has no weight under theta: ESS and chi2 then look healthy and are blind."""
    if support_lost_at(story) is None:
        return None
    case = Case(story, LOST_SUPPORT)
    sign, empty = "support lost", ": no weight is left, not health"
    case.past("chi2_seq", story.first_below("chi2_seq", LOST_CHI2), f"below {LOST_CHI2:g}", sign, empty)
    case.past("weight_mean", _mean_lost_at(story), f"below {LOST_WEIGHT:g}", sign, ": it should be near 1")
    for column in KL:
        case.past(column, story.first_above(column, LOST_KL), f"above {LOST_KL:g} nats per token", sign)
    step = story.first_below("prob_correlation", LOST_CORRELATION)
    case.past("prob_correlation", step, f"below {LOST_CORRELATION:g}", sign)
    for column in GAP_UP:
        case.take(story.rose(column))
    case.opposes(story.stayed("kl_mu_theta_k3"))
    return case.close()


def support_lost_at(story: Story) -> float | None:
    """The step from which a weight is gone and the policies are far apart; None where that is not so.

    Where the log holds no distance between the policies, the weight alone decides.
    """
    gone = [story.first_below("chi2_seq", LOST_CHI2), _mean_lost_at(story)]
    distances = [
        *(story.first_above(column, LOST_KL) for column in KL),
        story.first_below("prob_correlation", LOST_CORRELATION),
    ]
    measured = any(map(story.has, (*KL, "prob_correlation")))
    without_weight = [step for step in gone if step is not None]
    apart = [step for step in distances if step is not None]
    if not without_weight or (measured and not apart):
        return None
    return min(without_weight + apart)


def _mean_lost_at(story: Story) -> float | None:
    """The step from which the mean weight is gone; what was truncated or masked first is below 1 by construction."""
    known = story.has("weight_mean") and story.run.series["weight_mean"].source.tag == "exact"
    return story.first_below("weight_mean", LOST_WEIGHT) if known else None


def anchor_moved(run: LoggedRun) -> bool:
    """Whether the logged distance to the PPO anchor shows that it is another policy, whatever was clipped.

    A clip share of 0 alone does not tell: losses that never clip (SAPO, KL-Cov) are logged with 0 as well.
    """
    return "kl_anchor" in run.series and bool((np.abs(run.series["kl_anchor"].finite[1]) > ZERO).any())


def silent_anchor(story: Story) -> Cause | None:
    """With one optimizer step per batch the PPO anchor is the policy itself: clipping never acts."""
    case = Case(story, "silent anchor")
    if anchor_moved(story.run):
        return None
    silent = []
    weights = sorted(_changes(story, (*SPREAD_UP, *LAG, *GAP_UP), SPREAD_DOWN), key=lambda one: one.step)
    for column in ("share_clipped", "kl_anchor"):
        if not story.has(column):
            continue
        steps, values = story.run.series[column].finite
        if values.size < _ANCHOR_ROWS:
            continue
        if (np.abs(values) <= ZERO).all():
            silent.append(column)
            began = weights[0].step if weights else float(steps[0])
            case.supports(began, f"{story.label(column)} is 0 in all of {values.size} rows")
        elif column == "share_clipped":
            case.opposes(f"{story.label(column)} is not always 0")
    if not silent:
        return None
    lag = next((column for column in LAG if story.has(column) and story.start(column) >= 1), None)
    spread = story.start("kl_mu_theta_k3") if story.has("kl_mu_theta_k3") else 0.0
    if weights:
        case.supports(
            weights[0].step, f"yet the data were off-policy: {story.moved(weights[0])}; clipping could not act on it"
        )
    elif spread > _NOT_MU:
        first = float(story.run.series["kl_mu_theta_k3"].steps[0])
        case.supports(
            first, f"yet {story.label('kl_mu_theta_k3')} is {spread:.3g} from the start; clipping could not act on it"
        )
    elif lag is not None:
        first = float(story.run.series[lag].steps[0])
        case.supports(
            first,
            f"yet the data are {story.start(lag):.3g} versions old ({story.label(lag)}); clipping never acts on it",
        )
    else:
        case.opposes(
            "nothing in the log shows that the data were off-policy",
            "with one optimizer step per batch this is so by construction, in healthy runs too",
        )
    return case.close()

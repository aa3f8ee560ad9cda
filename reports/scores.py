"""What a score is and at which learning rate it was measured, as captions say it: as was found, never assumed."""

from __future__ import annotations

from vcpo_bench.analysis.comparison.best_learning_rate import were_tuned
from vcpo_bench.analysis.comparison.normalized_rewards import RAW, all_usable
from vcpo_bench.analysis.wording import learning_rate, listed
from vcpo_bench.reports.study import Study


def normalized(study: Study) -> bool:
    """Whether scores are rewards on the scale from the start policy to the best synchronous training."""
    return all_usable(study.findings("compare").tables["anchors"])


def score_column(study: Study) -> str:
    """The column of the tables of runs that holds their scores."""
    return "normalized" if normalized(study) else RAW


def score_name(study: Study) -> str:
    """What an axis of scores is called."""
    return "score" if normalized(study) else "reward"


def scale(study: Study) -> str:
    """A sentence on what a score is."""
    if normalized(study):
        return "Score 0 is the start policy, 1 the best synchronous training."
    return "Scores are rewards as they are: a task has no synchronous runs, or they gain too little to normalize by."


def was_chosen(study: Study) -> bool:
    """Whether there was a choice of learning rates for some of the scores that are shown."""
    return were_tuned(study.findings("compare").tables["tuned"])


def at_rate(study: Study) -> str:
    """At which learning rate scores were measured: `the one learning rate, 3e-4`."""
    runs = study.findings("compare").tables["tuned"]
    if were_tuned(runs):
        chosen = "the learning rate that the other half of the seeds chose"
        return chosen if (runs["rates"] > 1).all() else f"{chosen}, or the only one that all methods ran at"
    rates = [learning_rate(float(one)) for one in sorted(runs["lr"].unique())]
    if len(rates) == 1:
        return f"the one learning rate, {rates[0]}"
    return f"the only learning rate that all methods ran at, which differs by task, regime or lag ({listed(rates)})"

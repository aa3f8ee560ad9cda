"""What to use at a lag, on one screen."""

from __future__ import annotations

from vcpo_bench.analysis.advice import Choice, Recommendation
from vcpo_bench.analysis.advice.tables import Published, facts

TUNE = (
    "Tune downward, by factors of two: the lowest learning rate that was tried earned most in {lowest_rate_earns_most} "
    "places (phase study)."
)
START_LOW = (
    "If you cannot tune, start low: over rates a factor of eight apart, up to its best one or beyond, vcpo keeps "
    "{scaled_at_low_rates} of the best gain (24 and 48 tokens, lag 16)."
)
STEER = (
    "If the rate may be far too high, steer the step to a KL of 0.12 per usual response of T tokens: "
    "vcpo(ess=off)+kl-adaptive(target={target}). Over rates a factor of eight apart, the highest 4 to 16 times vcpo's "
    "best, it keeps {steered} of the best gain at 12 tokens, {steered_longer} at 24 and 48, and {steered_at_64} at lag "
    "64 (12 tokens); vcpo ends below its start at the highest (studies kl-target and shorter-steps). It is untried "
    "above 48 tokens. Measure your KL at lag 0 first: above twice the target the step falls to 1% in 12 updates."
)
FROZEN = (
    "Do not steer the step by the KL at this length: twice the target 0.12 / T is less than the 0.001 per token by "
    "which sampler and trainer may differ, as in VCPO's curves, and the step would fall to 1% in 12 updates."
)
SURE = (
    "How sure: policies of 0.1 M parameters and one of 1 M, responses of at most 48 tokens, one learning rate for all "
    "methods or the largest that survives.",
    "Tuned, methods lie close: at lag 64, each at its own rate, seven corrections keep {kept_at_own_rate} of the "
    "synchronous gain, vcpo the most, tis {tis_at_own_rate} at {tis_own_rate} of the synchronous rate (study tuned-64, "
    "one task).",
    "At one rate for all they part: at lag 16, where tis has an ESS of 0.3, vcpo keeps {longer_vcpo} of that gain with "
    "20 and 130 tokens, vespo {longer_vespo}, clip {longer_clip}; tis ends below its start in {longer_tis_fell} runs "
    "(study length).",
    "One released model was trained at lag 16 (SmolLM2-135M, 59 tokens, 1e-5; seeds 0 and 1): from {released_start}, "
    "reinforce ended at {released_reinforce}, vcpo at {released_vcpo}, tis (seed 0) at {released_tis}.",
)


def advice_text(found: Recommendation, can_tune: bool) -> str:
    """The answer as plain text: what to use and avoid, what it earned, how sure, and what papers report."""
    target = "0.12/T" if found.kl_target is None else f"{found.kl_target:.2g}"
    how = [TUNE] if can_tune else [] if found.keep else [START_LOW, FROZEN if found.frozen else STEER]
    blocks = [
        _use(found),
        _earned(found),
        [one.format(**facts(), target=target) for one in (*how, *SURE)],
        _length(found),
        ["Papers and reports, nearest first:", *(line for rows in found.published for line in _comparison(*rows))],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _use(found: Recommendation) -> list[str]:
    if found.studied_lag is None and found.earned_lag is None:
        return [f"Lag {found.lag}: no study of ours reaches it. Lower the lag, or see what papers report below."]
    if found.keep:
        return [_keep(found)]
    if found.studied_lag is None:
        return [f"Lag {found.lag}: see the rewards below; how much learning rate survives was studied up to lag 64."]
    lines = [f"Lag {found.lag}: use {' or '.join(', '.join(one.method for one in found.use).rsplit(', ', 1))}"]
    studied = f"lag {found.studied_lag}" + ("" if found.studied_lag == found.lag else ", the next one studied")
    lines.append(f"  multiply the learning rate that works at lag 0 by at most (phase study, {studied}):")
    lines += [f"    {one.method:24} {one.share:.2f}  ({_by_task(one)})" for one in found.use]
    if found.aside:
        lines.append("  as much survives with these, but")
        lines += [f"    {one.method:24} {one.share:.2f}  {one.but} ({_by_task(one)})" for one in found.aside]
    if found.avoid:
        lines.append("  avoid, on a task less than a tenth of the learning rate survives:")
        lines += [f"    {one.method:24} {_by_task(one)}" for one in found.avoid]
    return lines


def _keep(found: Recommendation) -> str:
    if found.lag == 0:
        return "Lag 0: keep what you have. There is nothing to correct, every importance weight is 1."
    shown = [row for rows in found.published for row in rows]
    died = {row.method for row in shown if row.lag <= found.lag and row.outcome == "collapses"}
    but = f" Of other methods, a report below saw {' and '.join(sorted(died))} collapse." if died else ""
    ran = f"None of the {len(found.earned)} methods that we ran at 3e-4 fails, and all end close to each other."
    return f"Lag {found.lag}: keep what you have. {ran}{but}"


def _by_task(one: Choice) -> str:
    return ", ".join(
        f"{row.task} {f'{row.beyond} ' if row.beyond else ''}{row.share:.{0 if row.share > 0.02 else 1}%}"
        for row in one.tasks
    )


def _earned(found: Recommendation) -> list[str]:
    if not found.earned:
        return []
    first = found.earned[0]
    nearest = "" if found.earned_lag == found.lag else " (the next that was run)"
    lines = [
        f"Reward after 300 updates at lag {found.earned_lag}{nearest}, one learning rate (3e-4) for all, "
        f"{first.seeds} seeds, start {first.start:.2f} (default run):"
    ]
    for row in found.earned:
        failed = f"  {row.failed} of {row.seeds} collapsed" if row.failed else ""
        lines.append(f"    {row.method:24} {row.reward:.2f} [{row.low:.2f}, {row.high:.2f}]{failed}")
    return lines


def _length(found: Recommendation) -> list[str]:
    if found.predicted_ess is None:
        return []
    return [
        f"Your length: at a KL per token as in VCPO (0.0005) the ESS is about {found.predicted_ess:.1%} of the batch.",
        "Ours were short, with larger ratios per token: what they say about token clips may not carry over.",
    ]


def _comparison(first: Published, *others: Published) -> list[str]:
    lag = f"lag {'' if first.lag_is == 'fixed' else 'up to '}{first.lag}"
    what = ", ".join(filter(None, (lag, first.model, first.task)))
    lines = [f"  {what} ({first.paper}{' ' + first.arxiv if first.arxiv else ''}: {first.source})"]
    return lines + [f"    {row.method:24} {row.outcome:9}  {row.figure}" for row in (first, *others)]

"""Two ways of going wrong that weights do not show: pushing down the improbable, and ignoring the prompt."""

from __future__ import annotations

import math

import numpy as np

from vcpo_bench.records.diagnostic import Diagnostic
from vcpo_bench.records.step_facts import Ints, StepFacts


def _negative_surprisal(facts: StepFacts) -> float | None:
    """How improbable the tokens are that the update pushes down, under the current policy."""
    if facts.logp is None or facts.reward is None:
        return None
    below = facts.reward < facts.reward.mean(-1, keepdims=True) - 1e-9
    counted = facts.mask & below.reshape(-1, 1)
    return float(-facts.logp[counted].mean()) if counted.any() else None


def _prompt_information(facts: StepFacts) -> float | None:
    """Mutual information between the prompt and the response token at the same position.

    A proxy in the sense of arXiv 2604.06268: it falls to 0 when all prompts get the same answers. Entropies are those
    of the counts with the correction of Miller and Madow; responses of one prompt are few, so what is left of the bias
    makes the values of different batch shapes incomparable. Positions are weighted by their tokens; a single prompt or
    response tells nothing.
    """
    if facts.tokens_drawn is None or facts.reward is None or 1 in facts.reward.shape:
        return None
    rows, positions = np.nonzero(facts.mask)
    tokens = facts.tokens_drawn[rows, positions]
    prompt = rows // facts.reward.shape[1]
    overall = _entropy(positions, tokens)
    return overall - _entropy(positions * facts.reward.shape[0] + prompt, tokens)


def _entropy(place: Ints, tokens: Ints) -> float:
    """Mean entropy of the tokens at each place, weighted by their number, with the correction of Miller and Madow."""
    if not tokens.size:
        return math.nan
    vocabulary = int(tokens.max()) + 1
    pairs, counts = np.unique(place * vocabulary + tokens, return_counts=True)
    _, where = np.unique(pairs // vocabulary, return_inverse=True)
    totals = np.bincount(where, weights=counts)
    kinds = np.bincount(where)
    plain = -(counts * np.log(counts / totals[where])).sum()
    return float((plain + ((kinds - 1) / 2).sum()) / tokens.size)


COLUMNS = (
    Diagnostic(
        "negative_surprisal",
        "nats/token",
        "mean -log pi of the tokens of responses below their group's mean reward; null: there are none",
        _negative_surprisal,
        level="diagnostics",
        label="surprisal of negatives",
    ),
    Diagnostic(
        "prompt_information",
        "nats/token",
        "mutual information of prompt and response token at equal position, from counts",
        _prompt_information,
        level="diagnostics",
        label="prompt information",
    ),
)

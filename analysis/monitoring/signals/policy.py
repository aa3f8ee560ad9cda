"""Signals of the policy: its entropy, its responses, what it makes of the prompt."""

from __future__ import annotations

import numpy as np

from vcpo_bench.analysis.monitoring.signal import Array, signal

BEGINNING = 50
"""Updates whose mean length is the reference, as in the schedule of arXiv 2602.01826."""


@signal("policy")
def entropy_low(entropy: Array) -> Array:
    """Entropy of the policy is low: -entropy."""
    return -entropy


@signal("policy")
def entropy_high(entropy: Array) -> Array:
    """Entropy of the policy is high."""
    return entropy


@signal("policy", memory=None)
def length_surge(length_mean: Array) -> Array:
    """Mean length over its mean in the first 50 updates.

    In the first updates, over the mean up to there (arXiv 2602.01826). Where responses have one length it is 1.
    """
    known = np.isfinite(length_mean)
    known[..., BEGINNING:] = False
    sums = np.cumsum(np.where(known, length_mean, 0.0), axis=-1)
    return np.asarray(length_mean * np.cumsum(known, axis=-1) / sums)


@signal("policy")
def negative_surprisal(negative_surprisal: Array) -> Array:
    """Surprisal of tokens of responses below their group's mean reward.

    Pushing down what the policy hardly says any more moves probability anywhere, and nothing bounds it.
    """
    return negative_surprisal


@signal("policy")
def prompt_ignored(prompt_information: Array) -> Array:
    """Minus the mutual information of prompt and response token.

    Where it rises, answers no longer depend on the prompt ("template collapse", arXiv 2604.06268); reward and entropy
    may look healthy meanwhile.
    """
    return -prompt_information

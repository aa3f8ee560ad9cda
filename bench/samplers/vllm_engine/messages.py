"""Requests to an engine and its answers, in plain numbers, however it is reached."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vcpo_bench.bench.trajectories import Rollout


class Request(NamedTuple):
    """One response to draw.

    Attributes:
        prompt: Token ids it continues, without padding.
        length: Most tokens to draw.
        seed: Seed of the engine's random stream for it.
        eos: Token that ends it, or None.
    """

    prompt: list[int]
    length: int
    seed: int
    eos: int | None


class Answer(NamedTuple):
    """The tokens drawn for one request.

    Attributes:
        tokens: Token ids, the end token included.
        logp: Log-probability of each; NaN where the engine gave none.
        versions: Updates seen by the weights that drew each; None where the engine does not report them.
    """

    tokens: list[int]
    logp: list[float]
    versions: list[int] | None = None


class BrokenAnswer(RuntimeError):  # noqa: N818 - reads as what happened
    """An answer that does not fit its request; none of it is used."""


def seed_of(uniform: float) -> int:
    """A seed below 2^53 from a number in [0, 1) of a keyed stream: equal streams, equal seeds."""
    return int(uniform * 2**53)


def ask(
    prompts: Tensor, real: Tensor, uniforms: Tensor, eos: int | None, positions: range, rollout: Rollout | None = None
) -> dict[int, Request]:
    """Requests for the tokens at consecutive positions of every row that has not ended.

    Args:
        prompts: int64 [P, Lp], padded on the left, P dividing B.
        real: bool [P, Lp], False at padding.
        uniforms: float64 [B, T]; the number at the first position becomes the seed.
        eos: Token that ends a response, or None.
        positions: Which tokens.
        rollout: The tokens drawn before, where the first position is not 0.

    Returns:
        The requests by row.
    """
    group = len(uniforms) // len(prompts)
    found = {}
    for row in range(len(uniforms)):
        if rollout is not None and not bool(rollout.mask[row, positions.start]):
            continue
        tokens = prompts[row // group][real[row // group]].tolist()
        if rollout is not None:
            tokens += rollout.responses[row, : positions.start].tolist()
        found[row] = Request(tokens, len(positions), seed_of(float(uniforms[row, positions.start])), eos)
    return found


def check(request: Request, answer: Answer) -> Answer:
    """The answer itself.

    Raises:
        BrokenAnswer: It has too many tokens, too few, tokens after its end, or not one log-probability for each.
    """
    count = len(answer.tokens)
    if len(answer.logp) != count:
        raise BrokenAnswer(f"{count} tokens came with {len(answer.logp)} log-probabilities")
    if not 0 < count <= request.length or request.eos in answer.tokens[:-1]:
        raise BrokenAnswer(f"{count} tokens where at most {request.length} were asked for, or some after the end")
    if not all(0 <= token < 2**31 for token in answer.tokens):
        raise BrokenAnswer("some tokens are no token ids")
    if count < request.length and answer.tokens[-1] != request.eos:
        raise BrokenAnswer(f"{count} of {request.length} tokens, and the last is not the end")
    if answer.versions is not None and len(answer.versions) != count:
        raise BrokenAnswer(f"{count} tokens came with {len(answer.versions)} versions")
    return answer


def fill(rollout: Rollout, row: int, positions: range, answer: Answer, eos: int | None) -> None:
    """Write the tokens at consecutive positions of a row; one that ended is padding from there on.

    Entropies are NaN: an engine reports the chosen token only.
    """
    part = slice(positions.start, positions.start + len(answer.tokens))
    rollout.responses[row, part] = torch.tensor(answer.tokens)
    rollout.logp[row, part] = torch.tensor(answer.logp)
    rollout.entropy[row, part] = math.nan
    if eos is not None and answer.tokens[-1] == eos:
        rollout.mask[row, part.stop :] = False


def whole(answers: Sequence[Answer], length: int, eos: int | None) -> Rollout:
    """A rollout of complete responses, one per row."""
    rollout = Rollout.empty(len(answers), length, eos)
    for row, answer in enumerate(answers):
        fill(rollout, row, range(length), answer, eos)
    versions = [answer.versions for answer in answers]
    if None in versions:
        return rollout
    padded = [found + [found[-1]] * (length - len(found)) for found in versions if found]
    return Rollout(rollout.responses, rollout.logp, rollout.mask, rollout.entropy, torch.tensor(padded))


def stamps(spans: Iterable[tuple[int, int, int]], count: int) -> list[int]:
    """Version of each of `count` tokens from spans (version, first token, one past the last).

    Raises:
        BrokenAnswer: The spans do not cover the tokens once each, in order.
    """
    found: list[int] = []
    for version, first, past in spans:
        if first != len(found) or not first <= past <= count:
            raise BrokenAnswer(f"weight versions of tokens {len(found)}.. are missing, repeated or too many")
        found += [version] * (past - first)
    if len(found) != count:
        raise BrokenAnswer(f"weight versions of {len(found)} tokens for {count}")
    return found

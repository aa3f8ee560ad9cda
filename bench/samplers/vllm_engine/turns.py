"""Responses in turns: each turn of the policy is a request that continues the tokens so far, whoever they came from.

What the policy said is never decoded to be encoded again: a request holds token ids, its own and those it heard.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vcpo_bench.bench.samplers.engines.base import Segment
from vcpo_bench.bench.samplers.vllm_engine.engine import LocalEngine
from vcpo_bench.bench.samplers.vllm_engine.messages import Answer, BrokenAnswer, Request, seed_of


class Speaker:
    """One response of a segment while its turns are drawn.

    Args:
        segment: The segment; it has episodes.
        row: Which response.
        prompt: Token ids of its prompt, without padding.
        eos: Token that ends a response, or None.
    """

    def __init__(self, segment: Segment, row: int, prompt: list[int], eos: int | None) -> None:
        assert segment.talk is not None
        self._segment, self._row, self._eos = segment, row, eos
        self._episode = segment.talk.episodes[row]
        self._place = segment.positions.start
        self._context = prompt + segment.rollout.responses[row, : self._place].tolist()
        self._logp, self._entropy, self._versions = list[float](), list[float](), list[int]()
        self._own: list[bool] = []

    def request(self, version: int) -> Request | None:
        """What to ask for next; None: no token of this segment is missing.

        Args:
            version: Of the present weights, which read what the environment says.
        """
        while self._episode.observes and self._place < self._segment.positions.stop:
            self._append(self._episode.observe(), 0.0, version, own=False)
        left = self._segment.positions.stop - self._place
        if self._episode.ended or not left:
            return None
        seed = seed_of(float(self._segment.uniforms[self._row, self._place]))
        return Request(list(self._context), left, seed, self._eos)

    def take(self, answer: Answer, version: int) -> bool:
        """Take the next tokens of the request; what follows the end of the turn is left out.

        Args:
            answer: The tokens.
            version: Of the weights that drew them, where the answer does not say.

        Returns:
            Whether more tokens of the same request are wanted.

        Raises:
            BrokenAnswer: Some of them are no token ids.
        """
        versions = answer.versions or [version] * len(answer.tokens)
        for token, logp, drawn in zip(answer.tokens, answer.logp, versions, strict=True):
            if not 0 <= token < 2**31:
                raise BrokenAnswer("some tokens are no token ids")
            self._append(token, logp, drawn, own=True)
            self._episode.say(token)
            if not self._episode.speaks or token == self._eos or self._place == self._segment.positions.stop:
                return False
        return True

    def _append(self, token: int, logp: float, version: int, own: bool) -> None:
        self._context.append(token)
        self._logp.append(logp)
        self._entropy.append(math.nan if own else 0.0)
        self._versions.append(version)
        self._own.append(own)
        self._place += 1

    def write(self) -> None:
        """Put the tokens into the rollout; what follows the end of the episode is padding.

        Entropies of drawn tokens are NaN: an engine reports the chosen token only.
        """
        rollout, count = self._segment.rollout, len(self._own)
        part = slice(self._place - count, self._place)
        if count:
            rollout.responses[self._row, part] = torch.tensor(self._context[-count:])
            rollout.logp[self._row, part] = torch.tensor(self._logp)
            rollout.entropy[self._row, part] = torch.tensor(self._entropy)
            rollout.mask[self._row, part] = torch.tensor(self._own)
        if rollout.version is not None and count:
            rollout.version[self._row, part] = torch.tensor(self._versions)
            rollout.version[self._row, self._place :] = self._versions[-1]
        if self._episode.ended:
            rollout.mask[self._row, self._place :] = False


def speakers(segments: Sequence[Segment], real: Callable[[Tensor], Tensor], eos: int | None) -> list[Speaker]:
    """One speaker for every response of some segments.

    Args:
        segments: The segments; each has episodes.
        real: Which tokens of prompts [P, Lp] are no padding, bool [P, Lp].
        eos: Token that ends a response, or None.
    """
    found: list[Speaker] = []
    for segment in segments:
        group = len(segment.uniforms) // len(segment.prompts)
        prompts = [prompt[own].tolist() for prompt, own in zip(segment.prompts, real(segment.prompts), strict=True)]
        found += [Speaker(segment, row, prompts[row // group], eos) for row in range(len(segment.uniforms))]
    return found


def converse(engine: LocalEngine, talkers: Sequence[Speaker], pushed: int) -> None:
    """Draw all that is missing with an engine that is stepped: a turn ends at the exact token that ends it.

    Nobody waits for the turn of another: whoever has heard his answer goes on at the next step.

    Args:
        engine: The engine.
        talkers: The responses.
        pushed: Version of the weights pushed last, for releases that do not count it themselves.

    Raises:
        RuntimeError: The engine lost a request.
    """
    counted = engine.weight_version()
    version = pushed if counted is None else counted
    flying: dict[str, Speaker] = {}
    try:
        _take_turns(engine, list(talkers), flying, version)
    finally:
        engine.abandon(flying)
    for talker in talkers:
        talker.write()


def _take_turns(engine: LocalEngine, waiting: list[Speaker], flying: dict[str, Speaker], version: int) -> None:
    known: dict[str, int] = {}
    while True:
        asked = [(talker, request) for talker in waiting if (request := talker.request(version)) is not None]
        flying |= zip(engine.begin([request for _, request in asked]), (talker for talker, _ in asked), strict=True)
        if not flying:
            return
        if engine.idle:
            raise RuntimeError(f"sampler_gave_no_answer: the engine lost {len(flying)} requests")
        drawn, waiting = engine.step(known), []
        for name, answer in drawn.items():
            known[name] = known.get(name, 0) + len(answer.tokens)
            if not flying[name].take(answer, version):
                waiting.append(flying.pop(name))
                del known[name]
        engine.abandon(drawn.keys() - flying.keys())


def converse_in_rounds(
    draw: Callable[[Sequence[Request]], Sequence[Answer]], talkers: Sequence[Speaker], version: Callable[[], int]
) -> None:
    """Draw all that is missing with an engine that answers whole requests: one turn of every response at a time.

    A turn's end is known once the environment has read it, so each request asks for all that has room, and what was
    drawn after the end is thrown away. The seeds are those of `converse`: an engine that draws a request's tokens the
    same way in both draws the same episodes.

    Args:
        draw: The engine's answers, in the order of the requests.
        talkers: The responses.
        version: Of the present weights.
    """
    waiting = list(talkers)
    while asked := [(talker, request) for talker in waiting if (request := talker.request(version())) is not None]:
        for (talker, _), answer in zip(asked, draw([request for _, request in asked]), strict=True):
            talker.take(answer, version())
        waiting = [talker for talker, _ in asked]
    for talker in talkers:
        talker.write()

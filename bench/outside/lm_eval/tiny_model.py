"""The built-in tiny policy as an lm-eval model: exact log-likelihoods, greedy and sampled generation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.models.utils import normalize_gen_kwargs
from lm_eval.utils import get_rolling_token_windows

from vcpo_bench.bench.outside.lm_eval.token_text import TokenText
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.policies.moe.policy import MoePolicy
from vcpo_bench.bench.policies.tiny.policy import TinyPolicy
from vcpo_bench.bench.streams import uniforms
from vcpo_bench.errors import UsageError

ROWS = 256
"""Sequences scored or sampled at once."""

Pair = tuple[list[int], list[int]]
"""Input tokens, and the tokens to predict at its last positions."""


class TinyPolicyLM(LM):  # type: ignore[misc]  # lm-eval ships no types
    """A tiny policy that reads and writes text.

    There is no beginning-of-text token. The first token of a text without context is predicted from the end token, as
    lm-eval does for such models; a policy without an end token predicts from the second token on.

    Args:
        policy: The policy.
        vocabulary: Its tokens as text.
        eos: Its end token, or None. Generated text leaves it out.
    """

    chat = False
    """Prompts are no chat turns."""

    def __init__(self, policy: TinyPolicy | MoePolicy, vocabulary: TokenText, eos: int | None) -> None:
        super().__init__()
        self.policy, self.vocabulary, self.eos = policy, vocabulary, eos

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Sum of log-probabilities of each continuation given its context, in nats, and whether it is the greedy one.

        Raises:
            UsageError: A text is empty, too long, or has characters without a token.
        """
        pairs = []
        for request in requests:
            context, continuation = (self.vocabulary.encode(text) for text in request.args)
            pairs.append(self._pair(context, continuation))
        return self._scores(pairs)

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Sum of log-probabilities of each whole text, each token once, in the windows of lm-eval's own models."""
        windows: list[Pair] = []
        owners = []
        for owner, request in enumerate(requests):
            (first, *_), tokens = self._pair([], self.vocabulary.encode(request.args[0]), whole=True)
            found = list(get_rolling_token_windows(tokens, first, self.policy.config.context, 1))
            windows += found
            owners += [owner] * len(found)
        totals = [0.0] * len(requests)
        for owner, (value, _) in zip(owners, self._scores(windows), strict=True):
            totals[owner] += value
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Responses, cut before the first stop string. Sampling noise depends only on the position of the request.

        Raises:
            UsageError: A prompt leaves no room, or the request asks for truncated or tempered sampling.
        """
        alike: defaultdict[tuple[int, int, bool], list[int]] = defaultdict(list)
        prompts, stops = [], []
        for place, request in enumerate(requests):
            text, asked = request.args
            prompt = self.vocabulary.encode(text)
            length, greedy, until = self._generation(asked, len(prompt))
            prompts.append(prompt)
            stops.append(until)
            alike[len(prompt), length, greedy].append(place)
        texts = [""] * len(requests)
        for (_, length, greedy), places in alike.items():
            for start in range(0, len(places), ROWS):
                chosen = places[start : start + ROWS]
                written = self._sample([prompts[place] for place in chosen], chosen, length, greedy)
                for place, text in zip(chosen, written, strict=True):
                    texts[place] = _cut(text, stops[place])
        return texts

    def _pair(self, context: list[int], continuation: list[int], whole: bool = False) -> Pair:
        """Input and target of a continuation. A text without context starts after the end token, if there is one."""
        if not context:
            start = [self.eos] if self.eos is not None else continuation[:1]
            context, continuation = start, continuation if self.eos is not None else continuation[1:]
        most = self.policy.config.context
        if not context or (not whole and len(context) + len(continuation) - 1 > most):
            given = len(context) + len(continuation)
            raise UsageError(f"a text of {given} tokens cannot be scored: the policy sees 1 to {most}")
        return [*context, *continuation[:-1]], continuation

    def _scores(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        """Log-likelihood of each target and whether all its tokens are the most likely ones."""
        return [
            score for start in range(0, len(pairs), ROWS) for score in self._score_rows(pairs[start : start + ROWS])
        ]

    def _score_rows(self, pairs: Sequence[Pair]) -> list[tuple[float, bool]]:
        longest = max(len(given) for given, _ in pairs)
        # padded behind the last token, where a causal policy does not look
        tokens = torch.tensor([given + [0] * (longest - len(given)) for given, _ in pairs])
        with torch.inference_mode():
            logp = self.policy(tokens).log_softmax(-1)
        scores = []
        for row, (given, target) in zip(logp, pairs, strict=True):
            places = row[len(given) - len(target) : len(given)]
            wanted = torch.tensor(target, dtype=torch.int64)
            value = places.gather(1, wanted.unsqueeze(1)).double().sum()
            scores.append((float(value), bool((places.argmax(-1) == wanted).all())))
        return scores

    def _generation(self, asked: dict[str, Any], prompt: int) -> tuple[int, bool, list[str]]:
        """Number of tokens to generate, whether greedily, and the stop strings."""
        settings = normalize_gen_kwargs(asked)
        room = self.policy.config.context - prompt
        if prompt < 1 or room < 1:
            raise UsageError(f"a prompt of {prompt} tokens leaves no room: the policy sees {prompt + room}")
        greedy = not settings["do_sample"]
        plain = settings.get("temperature", 1.0) == 1 and settings.get("top_p", 1) == 1 and not settings.get("top_k")
        if not (greedy or plain):
            raise UsageError(f"generation_kwargs {asked}: the tiny policy samples at temperature 1, untruncated")
        return min(settings["max_gen_toks"], room), greedy, [text for text in settings["until"] if text]

    def _sample(self, prompts: list[list[int]], places: list[int], length: int, greedy: bool) -> list[str]:
        draws = torch.from_numpy(uniforms(0, "lm-eval", 0, max(places) + 1, length))[places]
        rows = torch.full((len(prompts),), greedy)
        rollout = self.policy.sample(Draw(torch.tensor(prompts), draws, self.eos, rows))
        kept = rollout.mask if self.eos is None else rollout.mask & (rollout.responses != self.eos)
        return [
            self.vocabulary.decode(response[mask].tolist())
            for response, mask in zip(rollout.responses, kept, strict=True)
        ]


def _cut(text: str, stops: Sequence[str]) -> str:
    return text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]

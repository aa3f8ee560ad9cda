"""Drawing responses in which a policy and an environment take turns, with any policy that can extend responses."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from vcpo_bench.bench.policies.base import Decoding, Policy
from vcpo_bench.bench.policies.draw import Draw
from vcpo_bench.bench.tasks.environment import Environment
from vcpo_bench.bench.tasks.episode import Episode
from vcpo_bench.bench.trajectories import Rollout


class Conversation:
    """B episodes that grow together, one token of each at a time.

    A token of the environment takes the place of the one the policy drew: it is False in the mask, and its
    log-probability and entropy are 0. The policy reads it like its own.

    Args:
        environment: What answers the policy.
        prompts: int64 [P, Lp], P dividing `rows`: the responses of one prompt are consecutive.
        rows: B.
        length: Most tokens of a response, observed ones included.
    """

    def __init__(self, environment: Environment, prompts: Tensor, rows: int, length: int) -> None:
        each = prompts.repeat_interleave(rows // len(prompts), 0).tolist()
        self.episodes = [Episode(environment, prompt, length) for prompt in each]

    def extend(self, policy: Policy, rollout: Rollout, decoding: Decoding, draw: Draw, positions: range) -> None:
        """Draw the tokens at consecutive positions of every response, in place.

        Args:
            policy: Draws the tokens of the policy's turns.
            rollout: [B, T] tensors with the tokens before; filled in place.
            decoding: As for `Policy.extend`.
            draw: What is drawn. Its numbers at positions of observed tokens are not used, nor is its end token: the
                environment ends the episodes.
            positions: Which tokens to draw.
        """
        endless = replace(draw, eos=None)
        for place in positions:
            if all(episode.ended for episode in self.episodes):
                rollout.mask[:, place:] = False
                break
            policy.extend(rollout, decoding, endless, range(place, place + 1))
            self._put(rollout, place)

    def _put(self, rollout: Rollout, place: int) -> None:
        """Hand the tokens drawn at a position to the episodes, and put what they observe in their place."""
        observed, heard = list[int](), list[int]()
        for row, (episode, token) in enumerate(zip(self.episodes, rollout.responses[:, place].tolist(), strict=True)):
            if episode.observes:
                observed.append(row)
                heard.append(episode.observe())
            elif not episode.ended:
                episode.say(token)
        rows = torch.tensor(observed, dtype=torch.int64)
        for values in (rollout.logp, rollout.entropy):
            values[rows, place] = 0.0
        rollout.responses[rows, place] = torch.tensor(heard, dtype=torch.int64)
        rollout.mask[rows, place] = False
        if rollout.kept is not None:
            rollout.kept[rows, place] = 0
        rollout.mask[:, place + 1 :] = torch.tensor([not episode.ended for episode in self.episodes]).unsqueeze(1)

    def facts(self) -> Tensor:
        """What happened so far, int64 [B, 7] in the order of `EPISODE_FACTS`."""
        return torch.tensor([episode.facts() for episode in self.episodes])

    def replay(self, rollout: Rollout, stop: int) -> None:
        """Bring episodes that have just begun to where a rollout has them after `stop` tokens.

        Args:
            rollout: [B, T] tensors whose first `stop` tokens are drawn.
            stop: Number of tokens.
        """
        for episode, response in zip(self.episodes, rollout.responses[:, :stop].tolist(), strict=True):
            for token in response:
                if episode.observes:
                    episode.observe()
                elif not episode.ended:
                    episode.say(token)


def respond(policy: Policy, environment: Environment | None, draw: Draw) -> Rollout:
    """Whole responses: `Policy.sample`, or a conversation where there is an environment.

    Args:
        policy: Draws the tokens.
        environment: What answers it between its turns, or None.
        draw: What is drawn; an environment ends its episodes itself.
    """
    if environment is None:
        return policy.sample(draw)
    draw = replace(draw, eos=None)
    rollout, talk = policy.empty_rollout(draw), Conversation(environment, draw.prompts, draw.rows, draw.length)
    talk.extend(policy, rollout, policy.decoding(draw.prompts, draw.rows, draw.length), draw, range(draw.length))
    return replace(rollout, episodes=talk.facts())

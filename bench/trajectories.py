"""Sampled data: what a policy drew (`Rollout`), what a learner trains on (`Trajectories`), what is scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from vcpo_bench.lazy_torch import Tensor, torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Extras:
    """What only some responses carry beside their tokens; None where they do not. B is P, G in a `Trajectories`.

    Attributes:
        episodes: int64 [B, 7] counts of each episode in the order of `EPISODE_FACTS`, where there is an environment.
        kept: uint8 [B, T, ceil(V / 8)] which tokens survived truncation, as bits, 0 at padding; only under mask replay.
        sampler_logp: float32 [B, T, V] log-probability of every token of the vocabulary when each token was drawn, 0 at
            padding; only where the method asks for it.
    """

    episodes: Tensor | None = None
    kept: Tensor | None = None
    sampler_logp: Tensor | None = None

    def extras(self) -> dict[str, Tensor]:
        """Those there are, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(Extras)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}


@dataclass(frozen=True, slots=True)
class Rollout(Extras):
    """Sampled responses.

    Attributes:
        responses: int64 [B, T]; after the end of a response, padding with the end token.
        logp: float32 [B, T] log-probability of each token under the policy that drew it, 0 at padding.
        mask: bool [B, T], True up to and including the end token.
        entropy: float32 [B, T] entropy in nats of the distribution each token was drawn from, 0 at padding.
        version: int64 [B, T] updates seen by the weights that drew each token, from a sampler that tracks it itself.

    With an environment the mask has holes: tokens that the policy observed and did not draw are False, and their
    log-probability is 0. Nothing else tells them apart, and everything that counts tokens counts those of the mask.
    """

    responses: Tensor
    logp: Tensor
    mask: Tensor
    entropy: Tensor
    version: Tensor | None = None

    @classmethod
    def empty(cls, rows: int, length: int, eos: int | None, **extras: Tensor) -> Rollout:
        """Nothing drawn yet. Made outside inference mode, so that the learner may save it for its backward pass.

        Args:
            rows: B.
            length: T.
            eos: Token that ends a response, or None.
            extras: Room for what is recorded beside the tokens, see `Extras`.
        """
        zeros, mask = torch.zeros(2, rows, length), torch.ones(rows, length).bool()
        return cls(torch.full((rows, length), eos or 0), zeros[0], mask, zeros[1], **extras)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by name, without the absent ones."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def take(self, rows: slice) -> Rollout:
        """Some of the rows."""
        return Rollout(**{name: tensor[rows] for name, tensor in self.tensors().items()})

    def put(self, rows: Tensor, drawn: Rollout) -> None:
        """Write another rollout, which carries the same, over the rows of these numbers, in place."""
        theirs = drawn.tensors()
        for name, tensor in self.tensors().items():
            tensor[rows] = theirs[name]

    def grouped(self, index: int, prompts: Tensor, reward: Tensor, origin: Tensor | None = None) -> Trajectories:
        """The batch that these responses to P prompts are, once the version of each token is known.

        Args:
            index: Number of the batch.
            prompts: `[P, Lp]`.
            reward: `[B]`.
            origin: See `Trajectories`.
        """
        assert self.version is not None
        named = {"responses": self.responses, "behavior_logp": self.logp, "mask": self.mask, "version": self.version}
        named |= self.extras() | {"reward": reward}
        each = {name: tensor.view(len(prompts), -1, *tensor.shape[1:]) for name, tensor in named.items()}
        return Trajectories(index, prompts, origin=origin, **each)


class Responses(NamedTuple):
    """Responses for a policy to score.

    Attributes:
        prompts: int64 [P, Lp], P dividing B: the responses of one prompt are consecutive.
        responses: int64 [B, T].
        mask: bool [B, T], True where the token carries loss.
        kept: uint8 [B, T, ceil(V / 8)], tokens over which each distribution is normalized (mask replay); None: all.
    """

    prompts: Tensor
    responses: Tensor
    mask: Tensor
    kept: Tensor | None = None

    def to(self, device: torch.device) -> Responses:
        """The same on a device."""
        return Responses(**{name: tensor.to(device) for name, tensor in self._asdict().items() if tensor is not None})

    def take(self, rows: slice | Tensor) -> Responses:
        """Some of the rows, where each has a prompt of its own."""
        return Responses(**{name: tensor[rows] for name, tensor in self._asdict().items() if tensor is not None})

    @property
    def each(self) -> Responses:
        """The same with a prompt per response, [B, Lp]."""
        return self._replace(prompts=self.prompts.repeat_interleave(len(self.responses) // len(self.prompts), 0))


@dataclass(frozen=True, slots=True)
class Trajectories(Extras):
    """One batch of P prompts with G responses each, of at most T tokens.

    Attributes:
        index: Number of the batch; with the seed it fixes prompts and sampling noise.
        prompts: `[P, Lp]` int64 token ids.
        responses: `[P, G, T]` int64 token ids.
        behavior_logp: `[P, G, T]` float32, log-probability of each token when it was sampled.
        mask: `[P, G, T]` bool, True where the policy generated the token.
        reward: `[P, G]` float64, one scalar per trajectory.
        version: `[P, G, T]` int64, optimizer updates seen by the weights that sampled each token.
        proximal_logp: `[P, G, T]` float32 under the policy at the first update on the rollout, where wanted.
        origin: `[P, 2]` int64 batch and group each prompt came from; None where all are batch `index` in order.
        seconds: `[P, G, 2]` float64 time each trajectory spent in flight and in the queue; only where time is real.
    """

    index: int
    prompts: Tensor
    responses: Tensor
    behavior_logp: Tensor
    mask: Tensor
    reward: Tensor
    version: Tensor
    proximal_logp: Tensor | None = None
    origin: Tensor | None = None
    seconds: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by field name, for a checkpoint, without the absent ones."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "index"}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def take(self, groups: Sequence[int]) -> Trajectories:
        """Selected groups, in the order given, with their origin."""
        chosen = torch.tensor(groups, dtype=torch.int64)
        tensors = {name: tensor[chosen] for name, tensor in self.tensors().items()}
        return Trajectories(self.index, **(tensors | {"origin": self.origins()[chosen]}))

    def origins(self) -> Tensor:
        """`[P, 2]` batch and group of each prompt."""
        if self.origin is not None:
            return self.origin
        groups = torch.arange(len(self.prompts))
        return torch.stack([torch.full_like(groups, self.index), groups], dim=1)

    def flat(self) -> Responses:
        """The `P*G` responses for a policy to score, with the tokens that survived, where they are recorded."""
        kept = None if self.kept is None else self.kept.flatten(0, 1)
        return Responses(self.prompts, self.responses.flatten(0, 1), self.mask.flatten(0, 1), kept)

    def single_rows(self, rows: Tensor) -> Trajectories:
        """Selected ones of the `P*G` trajectories, each as a group of one: `[len(rows), 1, T]`."""
        G = self.responses.shape[1]
        of_prompt = {"prompts", "origin"}
        tensors = {
            name: tensor[rows // G] if name in of_prompt else tensor.flatten(0, 1)[rows].unsqueeze(1)
            for name, tensor in self.tensors().items()
        }
        return Trajectories(self.index, **tensors)

    def oldest(self) -> Tensor:
        """`[P, G]` version of the oldest generated token of each trajectory."""
        return torch.where(self.mask, self.version, torch.iinfo(torch.int64).max).amin(-1)


def join(index: int, parts: Sequence[Trajectories]) -> Trajectories:
    """Concatenate several batches, group after group, into batch number `index`; each group keeps its origin.

    What only some of them carry is left out: after a fork, those of the parent may carry more.
    """
    columns = [part.tensors() | {"origin": part.origins()} for part in parts]
    shared = [name for name in columns[0] if all(name in column for column in columns)]
    return Trajectories(index, **{name: torch.cat([column[name] for column in columns]) for name in shared})

"""Sampled data: the responses a policy drew (`Rollout`), and batches the learner trains on (`Trajectories`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from vcpo_bench.records.step_facts import EPISODE_FACTS


@dataclass(frozen=True)
class Rollout:
    """Sampled responses.

    Attributes:
        responses: int64 [B, T]; after the end of a response, padding with the end token.
        logp: float32 [B, T] log-probability of each token under the policy that drew it, 0 at padding.
        mask: bool [B, T], True up to and including the end token.
        entropy: float32 [B, T] entropy in nats of the distribution each token was drawn from, 0 at padding.
        version: int64 [B, T] updates seen by the weights that drew each token, from a sampler that tracks it itself.
        kept: uint8 [B, T, ceil(V / 8)] which tokens survived truncation, as bits, 0 at padding; only under mask replay.
        episodes: int64 [B, 7] counts of each episode in the order of `EPISODE_FACTS`, where there is an environment.
        routes: int8 [B, Lp + T, layers, k] experts that each position used, from a mixture of experts that records them
            (`policies.routed`).
        router_logp: float32 [B, T, layers, k] log-probability of each of these experts under the router of the sampler,
            at the position that drew the token, 0 at padding; only where the method asks for it.

    With an environment the mask has holes: tokens that the policy observed and did not draw are False, and their
    log-probability is 0. Nothing else tells them apart, and everything that counts tokens counts those of the mask.
    """

    responses: Tensor
    logp: Tensor
    mask: Tensor
    entropy: Tensor
    version: Tensor | None = None
    episodes: Tensor | None = None
    routes: Tensor | None = None
    kept: Tensor | None = None
    router_logp: Tensor | None = None

    @classmethod
    def empty(
        cls,
        rows: int,
        length: int,
        eos: int | None,
        facts: bool = False,
        routes: Tensor | None = None,
        kept_bytes: int = 0,
        router_logp: Tensor | None = None,
    ) -> Rollout:
        """Nothing drawn yet. Made outside inference mode, so that the learner may save it for its backward pass.

        Args:
            rows: B.
            length: T.
            eos: Token that ends a response, or None.
            facts: Whether there is an environment, so that something is counted of every episode.
            routes: Routes without an entry yet, where the policy has them (`Policy.empty_routes`).
            kept_bytes: Bytes of a set of surviving tokens; 0: they are not recorded.
            router_logp: Zeros, where they are recorded (`Policy.empty_router_logp`).
        """
        zeros = torch.zeros(2, rows, length)
        episodes = torch.zeros(rows, len(EPISODE_FACTS), dtype=torch.int64) if facts else None
        mask = torch.ones(rows, length).bool()
        kept = torch.zeros(rows, length, kept_bytes, dtype=torch.uint8) if kept_bytes else None
        responses = torch.full((rows, length), eos or 0)
        optional = {"episodes": episodes, "routes": routes, "kept": kept, "router_logp": router_logp}
        return cls(responses, zeros[0], mask, zeros[1], **optional)


@dataclass(frozen=True, slots=True)
class Trajectories:
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
        episodes: `[P, G, 7]` int64 counts of each episode, see `Rollout`; only where the task has an environment.
        routes: `[P, G, Lp + T, layers, k]` int8 experts that the sampler used, see `Rollout`; only from a mixture of
            experts.
        learner_routes: The same as the learner computes them, once, when the batch has just been sampled.
        kept: `[P, G, T, ceil(V / 8)]` uint8, which tokens survived truncation, see `Rollout`; only under mask replay.
        router_logp: `[P, G, T, layers, k]` float32, what the sampler's routers said of these experts, see `Rollout`.
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
    episodes: Tensor | None = None
    routes: Tensor | None = None
    learner_routes: Tensor | None = None
    kept: Tensor | None = None
    router_logp: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """The tensors by field name, for a checkpoint, without the absent ones."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "index"}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def split(self, parts: int) -> list[Trajectories]:
        """Cut along prompts into at most `parts` pieces of nearly equal size; groups stay whole."""
        pieces = min(parts, self.prompts.shape[0])
        cut = {name: tensor.tensor_split(pieces) for name, tensor in self.tensors().items()}
        return [Trajectories(self.index, **{name: chunks[i] for name, chunks in cut.items()}) for i in range(pieces)]

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

    def flat_prompts(self) -> Tensor:
        """`[P*G, Lp]`: the prompt of every trajectory."""
        return self.prompts.repeat_interleave(self.responses.shape[1], dim=0)

    def flat(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Prompts `[P, Lp]`, responses, mask `[P*G, T]` and surviving tokens, if recorded: what a policy scores."""
        kept = None if self.kept is None else self.kept.flatten(0, 1)
        return self.prompts, self.responses.flatten(0, 1), self.mask.flatten(0, 1), kept

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

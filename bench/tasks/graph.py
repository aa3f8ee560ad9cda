"""The graph of the walks: ten nodes, three edges each, and the count of the legal ways to a goal."""

from __future__ import annotations

from functools import cache

from vcpo_bench.lazy_torch import Tensor, torch

NODES = 10
STEPS = (1, 3, 6)  # node n leads to n + 1, n + 3 and n + 6, modulo 10
MARK = 10
"""The token that ends a prompt."""

PROMPT = 5
"""Tokens of a prompt: start, goal, two closed nodes (equal: one), the mark."""

COMMON = 8
"""Goals and closed nodes of demonstrations are nearly always below this."""


def legal_steps(prompts: Tensor, responses: Tensor) -> Tensor:
    """Bool [B, T]: token t is a node that may be entered, one edge from the node before it (the start for the first).

    Args:
        prompts: int64 [B, 5].
        responses: int64 [B, T].
    """
    before = torch.cat([prompts[:, :1], responses[:, :-1]], dim=1)
    difference = (responses - before) % NODES
    edge = (difference == STEPS[0]) | (difference == STEPS[1]) | (difference == STEPS[2])
    entered = (responses != prompts[:, 2:3]) & (responses != prompts[:, 3:4])
    return edge & entered & (responses < NODES) & (before < NODES)


def ways(prompts: Tensor, longest: int) -> Tensor:
    """Number of legal walks from every node to the goal, by length: float64 [longest + 1, P, 10].

    Args:
        prompts: int64 [P, 5].
        longest: Largest number of steps.
    """
    open_nodes = torch.ones(len(prompts), NODES, dtype=torch.float64).scatter(1, prompts[:, 2:4], 0.0)
    counts = [torch.zeros(len(prompts), NODES, dtype=torch.float64).scatter(1, prompts[:, 1:2], 1.0)]
    for _ in range(longest):
        after = counts[-1] * open_nodes
        counts.append(sum((after.roll(-step, 1) for step in STEPS), torch.zeros_like(after)))
    return torch.stack(counts)


def right_walks(prompts: Tensor, steps: Tensor, draws: Tensor, longest: int) -> Tensor:
    """Random legal walks that end on the goal, every one equally likely: int64 [B, longest].

    Args:
        prompts: int64 [B, 5]; each must have a legal walk of its length.
        steps: Length of each walk, int64 [B]; what follows it repeats the goal.
        draws: Uniform numbers, float64 [B, longest].
        longest: Largest number of steps.
    """
    counts, rows = ways(prompts, longest), torch.arange(len(prompts))
    avoided = torch.zeros(len(prompts), NODES, dtype=torch.bool).scatter(1, prompts[:, 2:4], value=True)
    node, walk = prompts[:, 0], []
    for place in range(longest):
        left = (steps - place - 1).clamp(min=0)
        successors = (node[:, None] + torch.tensor(STEPS)) % NODES
        weight = counts[left[:, None], rows[:, None], successors].masked_fill(avoided.gather(1, successors), 0.0)
        share = weight.cumsum(1) / weight.sum(1, keepdim=True).clamp(min=1.0)
        choice = (draws[:, place : place + 1] >= share).sum(1).clamp(max=len(STEPS) - 1)
        node = torch.where(steps > place, successors[rows, choice], node)
        walk.append(node)
    return torch.stack(walk, dim=1)


@cache
def questions(shortest: int, longest: int) -> Tensor:
    """Every prompt, int64 [Q, 5], that some legal walk of `shortest` to `longest` steps answers.

    The two closed nodes are neither start nor goal, the smaller one first.
    """
    nodes = torch.arange(NODES)
    prompts = torch.cartesian_prod(nodes, nodes, nodes, nodes, torch.tensor([MARK]))
    start, goal, one, two = prompts[:, :4].unbind(1)
    apart = (one != start) & (one != goal) & (two != start) & (two != goal)
    prompts = prompts[apart & (one <= two)]
    counts = ways(prompts, longest)[shortest:, torch.arange(len(prompts)), prompts[:, 0]]
    return prompts[(counts > 0).any(0)]


def rare(prompts: Tensor) -> Tensor:
    """Bool [P]: the goal or a closed node of the prompt [P, 5] is one that demonstrations hardly show."""
    return (prompts[:, 1:4] >= COMMON).any(1)

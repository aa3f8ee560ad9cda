"""Whether a Ray cluster can ever give what a task asks for: Ray waits for more machines without a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_RESOURCES = {
    "num_cpus": ("CPU", "CPU cores", 1.0),
    "num_gpus": ("GPU", "GPUs", 1.0),
    "memory": ("memory", "GiB", 2**30),
}
"""Ray's name of a resource, its unit, and the amount of one unit, by the name with which a task asks for it."""


def why_waiting(needs: Mapping[str, float], nodes: Sequence[Mapping[str, float]]) -> str:
    """One line on tasks that do not start.

    Args:
        needs: What a task asks for: `num_cpus`, `num_gpus`, `memory` in bytes; empty: none waits.
        nodes: What each living node has in all, under Ray's names.
    """
    if not needs:
        return ""
    asked = {name: amount for name, amount in needs.items() if amount > 0}
    if any(all(node.get(_RESOURCES[name][0], 0.0) >= amount for name, amount in asked.items()) for node in nodes):
        return "every node that could run a cell is busy: cells wait for a free place"
    most = {name: max((node.get(_RESOURCES[name][0], 0.0) for node in nodes), default=0.0) for name in asked}
    return (
        f"no node of the Ray cluster has the {_listed(asked)} that a cell asks for (at most: {_listed(most)}): "
        "add such a node, or press Ctrl-C and ask for less in --launcher"
    )


def _listed(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{amount / _RESOURCES[name][2]:.3g} {_RESOURCES[name][1]}" for name, amount in amounts.items())

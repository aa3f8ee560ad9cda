"""Mixtures of experts: how many router decisions differ, by cause. Null for policies without routers."""

from __future__ import annotations

from vcpo_bench.records.diagnostic import Reported

COLUMNS = (
    Reported(
        "routers_changed",
        "0..1",
        "mixture of experts: share of router decisions in which the sampler and the learner, now and without replay, "
        "chose different experts",
        label="routers changed",
    ),
    Reported(
        "routers_changed_engine",
        "0..1",
        "the same between the sampler and the learner when the batch had just been sampled: the engine's part",
        label="routers changed by the engine",
    ),
    Reported(
        "routers_changed_lag",
        "0..1",
        "the same between the learner then and now: the part of the updates in between",
        label="routers changed by lag",
    ),
    Reported(
        "tokens_rerouted",
        "0..1",
        "mixture of experts: share of positions in which any layer's decision differs between sampler and learner",
        label="tokens rerouted",
    ),
)

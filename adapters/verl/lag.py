"""Exact policy lag in verl's synchronous trainer, as its custom sampler.

    trainer.v1.sampler.custom_sampler.path=pkg://vcpo_bench.adapters.verl.lag
    trainer.v1.sampler.custom_sampler.name=FifoLag
    +trainer.v1.sampler.sampler_kwargs.lag=8

Each step generates with the current weights, and update t trains on what the weights of update max(t - k, 0) wrote. The
first step generates k + 1 batches.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from vcpo_bench.errors import UsageError


class FifoQueue:
    """Stands before verl's `ReplayBuffer`: hands out the oldest prompts, once every generation has ended."""

    trainer_mode: str
    sampler_kwargs: Any
    prompt_global_steps: Any
    partitions: Any
    pending_keys: Any
    running_keys: Any

    def __init__(self, **settings: Any) -> None:
        parent: Any = super()
        parent.__init__(**settings)
        self.lag = read_lag(self.sampler_kwargs)
        if self.trainer_mode != "sync":
            raise UsageError(
                f"FifoLag in verl: trainer_mode {self.trainer_mode} generates while it trains, so that no lag is "
                "exact; use sync, vcpo_bench or vcpo_bench_monitor"
            )

    def sample(self, global_steps: int, partition_id: str, batch_size: int) -> tuple[Any, dict[str, float]]:
        """The batch of this step, and what goes into the log.

        Args:
            global_steps: Number of this step, from 1.
            partition_id: `train`, or `val`, which has no lag.
            batch_size: Prompts.

        Raises:
            UsageError: The waiting batches of an earlier run are gone, or a trajectory has another version.
        """
        parent: Any = super()
        if partition_id != "train":
            return parent.sample(global_steps, partition_id, batch_size)  # type: ignore[no-any-return]
        self._fill(global_steps, batch_size)
        self._wait()
        steps = self.prompt_global_steps["train"]
        oldest = sorted(steps, key=steps.__getitem__)[:batch_size]
        me: Any = self
        batch = me._materialize_batch("train", oldest, dict(self.partitions["train"]))
        self._check_versions(batch.tags, max(global_steps - 1 - self.lag, 0))
        return batch, {"vcpo_bench/lag": float(self.lag)}

    def _fill(self, global_steps: int, batch_size: int) -> None:
        me: Any = self
        me._sync_metadata_from_transfer_queue()
        missing = (self.lag + 1) * batch_size - len(self.prompt_global_steps["train"])
        if missing <= 0:
            return
        if global_steps > 1:
            raise UsageError(
                f"FifoLag in verl: {missing} prompts that should wait at step {global_steps} are gone. verl's sync "
                "mode does not save them in checkpoints; trainer.v1.trainer_mode=vcpo_bench or vcpo_bench_monitor does"
            )
        me.refill_fn(missing)

    def _wait(self) -> None:
        """Until nothing is being generated, so that no response sees a change of the weights."""
        import time

        me: Any = self
        since = time.time()
        me._sync_metadata_from_transfer_queue()
        while self.pending_keys["train"] or self.running_keys["train"]:
            since = me._wait_for_next_poll("train", since)
            me._sync_metadata_from_transfer_queue()

    def _check_versions(self, tags: list[dict[str, Any]], wanted: int) -> None:
        found = {tag[name] for tag in tags for name in ("min_global_steps", "max_global_steps")}
        if found != {wanted}:
            raise UsageError(f"FifoLag in verl: weights {sorted(found)} wrote this batch, and {wanted} should have")


def read_lag(sampler_kwargs: Any) -> int:
    """The k of `sampler_kwargs.lag`.

    Raises:
        UsageError: It is missing, or no whole number of updates.
    """
    lag = (sampler_kwargs or {}).get("lag")
    if not isinstance(lag, int) or isinstance(lag, bool) or lag < 0:
        raise UsageError(
            f"FifoLag in verl: sampler_kwargs.lag is {lag}; set +trainer.v1.sampler.sampler_kwargs.lag=8 for data that "
            "wait 8 steps"
        )
    return lag


@cache
def _sampler_class() -> Any:
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    return type("FifoLag", (FifoQueue, ReplayBuffer), {"__module__": __name__})


def __getattr__(name: str) -> Any:
    if name != "FifoLag":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _sampler_class()

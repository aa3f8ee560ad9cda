"""Which update it is, and the rewards of the batches around it."""

from vcpo_bench.records.diagnostic import Reported

COLUMNS = (
    Reported("step", "updates", "index t of the update that turns theta_t into theta_{t+1}, from 0", kind="int"),
    Reported(
        "sampled_reward",
        "reward",
        "mean reward of the newest complete batch: with fifo, the one theta_t itself sampled at this step",
    ),
    Reported("batch_reward", "reward", "mean reward of the batch this update consumed"),
)

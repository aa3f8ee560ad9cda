"""The monitor in a training loop of your own: it speaks while the weights grow heavier, before the reward falls.

Run it: `python examples/monitor_in_a_loop.py`. It needs numpy only.
"""

import numpy as np

import vcpo_bench as vb


def watch(updates: int = 80, drift_from: int = 30) -> int | None:
    """The update of the first alarm; None: there was none.

    Args:
        updates: Number of updates.
        drift_from: From here on the policy drifts away from its sampler a little more at every update.
    """
    random = np.random.default_rng(0)
    monitor = vb.Monitor()
    for update in range(updates):
        spread = 0.1 + 0.15 * max(0, update - drift_from)  # nats
        log_weights = random.normal(-(spread**2) / 2, spread, size=128)  # log pi - log mu of each trajectory
        rewards = random.binomial(1, 0.6, size=128).astype(float)
        reading = monitor.step(log_weights=log_weights, rewards=rewards, grad_norm=random.lognormal(0, 0.2))
        if reading.alarms:
            print(reading)
            return update
    return None


if __name__ == "__main__":
    print("first alarm at update", watch())

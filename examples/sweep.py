"""A sweep from Python: two methods at two lags, the scoreboard, and the reward of each method by lag.

Run it: `python examples/sweep.py [DIR]`. It takes about a minute; run it again and it trains only what is missing.
"""

import sys

import vcpo_bench as vb


def sweep(out: str, steps: int = 60) -> vb.Tables:
    """Train what is missing and return the tables."""
    return vb.run(
        ["tis", "clip(high=0.28)"],
        staleness=[0, 4],
        seeds=1,
        steps=steps,
        prompts=4,
        responses=4,
        out=out,
        controls=False,
    )


if __name__ == "__main__":
    tables = sweep(sys.argv[1] if len(sys.argv) > 1 else "results/example")
    print(tables.scoreboard.pivot_table(index="staleness", columns="method", values="final_reward"))
    print("unit of the KL column:", tables.steps.attrs["units"]["kl_mu_theta_k3"])

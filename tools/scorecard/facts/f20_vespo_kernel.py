"""Fact 20: VESPO's kernel needs its asymmetry; symmetric kernels are unstable or slow."""

from __future__ import annotations

from scorecard.cells import Block
from scorecard.fact import Fact, Part
from scorecard.facts.f19_vespo_sweep import RATE
from scorecard.rules import mean_above, paired
from scorecard.tables import Tables

OWN, UNSTABLE, SLOW = "vespo", "vespo(k_neg=2,lam_neg=3)", "vespo(k_pos=3,lam_pos=2)"
KERNELS = Block((OWN, UNSTABLE, SLOW), "walk", (15,), RATE, regime="minibatch")


def judge(tables: Tables) -> list[Part]:
    """Survival of the symmetric (2, 3), speed of the symmetric (3, 2); the divided exponents do not exist here."""
    runs = tables.outcomes(KERNELS)
    speed = [float(tables.curve(run)["sampled_reward"].mean()) for run in runs["run"]]
    runs = runs.assign(speed=speed)
    lost = runs.groupby("method")["failed"].sum()
    counts = ", ".join(f"`{name}` {count}" for name, count in lost.items())
    return [
        mean_above("(2, 3) is unstable", f"updates survived, own minus (2, 3): {{}}; failed of 8: {counts}",
                   paired(runs, OWN, UNSTABLE, "life")),
        mean_above("(3, 2) is slow", "mean reward over training, own minus (3, 2): {}",
                   paired(runs, OWN, SLOW, "speed")),
        Part("log W divided by T or its root", "cannot be tested here", "the kernel has no such parameter"),
    ]  # fmt: skip


FACT = Fact(
    number=20,
    title="Ablation of the VESPO kernel",
    order=70,
    statement=(
        "VESPO's ablation: dividing log W by T dies near step 350, by its root has spikes; the symmetric kernel (2, "
        "3) is unstable, (3, 2) slow."
    ),
    source="VESPO (2602.10693 v3), figures 6 and 7",
    rule=(
        "`minibatch` with N = 16 on `walk` at 4e-4. Updates survived, VESPO minus symmetric (2, 3), and mean held-out "
        "reward over training, VESPO minus symmetric (3, 2), paired by seed, are above 0 (reproduced) or below "
        "(refuted), t. The divided exponents cannot be tested: there is no such parameter."
    ),
    judge=judge,
    blocks=(KERNELS,),
)

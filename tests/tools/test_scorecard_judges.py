"""Every judge of the scorecard gives each of its verdicts, on synthetic tables whose verdict is known."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scorecard_tables import FACTS, Story, tables, wobble
from scorecard_tables import even_seed as even

R, F, U, C = "reproduced", "refuted", "undecided", "cannot be tested here"
Case = tuple[int, Callable[[Any], Story], list[str]]
CASES: list[Case] = []


def case(number: int, *verdicts: str) -> Callable[[Callable[[Any], Story]], Callable[[Any], Story]]:
    """Enter a world with the verdicts it must get, in the order of the parts."""

    def enter(tell: Callable[[Any], Story]) -> Callable[[Any], Story]:
        CASES.append((number, tell, list(verdicts)))
        return tell

    return enter


def weak(config: Any) -> bool:
    return config.staleness > 0 and config.method in ("tis", "reinforce")


# 1 and 3: who is lost
case(1, R, R)(lambda c: Story(fall=30 if weak(c) else None))
case(1, F, F)(lambda c: Story())
case(1, F, F)(lambda c: Story(fall=30 if c.staleness else None))
case(1, U, U)(lambda c: Story(fall=30))
case(1, U, F)(lambda c: Story(fall=30 if weak(c) and c.task == "walk" and even(c) else None))

TOPS = {"tis": 0.9, "vcpo(ess=off)": 0.7, "vcpo(baseline=group)": 0.7, "vcpo": 0.6}
case(3, R, R, R, R)(lambda c: Story(top=0.9 if c.method == "vcpo" else 0.8, fall=30 if weak(c) else None))
case(3, F, F, F, F)(lambda c: Story(top=TOPS.get(c.method, 0.9)))


@case(3, U, U, U, U)
def halves_unclear(c: Any) -> Story:
    falls = (c.method == "tis" and even(c)) or (c.method == "vcpo(ess=off)" and c.seed in (0, 2))
    tops = {"vcpo": 0.3 + wobble(c.seed, 0.6), "vcpo(baseline=group)": 0.45}
    return Story(top=tops.get(c.method, 0.6), fall=30 if falls else None)


case(3, F, R, F, F)(
    lambda c: Story(top={"vcpo": 0.9, "tis": 0.5}.get(c.method, 0.7) if c.task == "walk" else TOPS.get(c.method, 0.9))
)

# 2 and 22 are told by rewards alone
case(2, R, R)(lambda c: Story(tau=20 + c.staleness, top=0.9 + wobble(c.seed, 0.01)))
case(2, F, R)(lambda c: Story(tau=20 + c.staleness, top=0.5 if c.staleness == 128 else 0.9))
case(2, R, F)(lambda c: Story(tau=150 - c.staleness))
case(2, F, U)(lambda c: Story(top=0.5 if c.staleness else 0.9))  # none arrives with a lag: all tied, no order
case(2, U, U)(
    lambda c: Story(
        tau=20 + c.staleness if even(c) else 150 - c.staleness,
        top=0.87 + wobble(c.seed, 0.4) if c.staleness == 128 else 0.9,
    )
)
ORDER = {"vespo": 0.0, "sapo": -0.3, "clip-higher": -0.1, "gspo": -0.2}
case(22, R)(lambda c: Story(easy=wobble(c.seed, 0.1), hard=ORDER[c.method] + wobble(c.seed, 0.1)))
case(22, F)(lambda c: Story(hard=wobble(c.seed, 0.1), easy=ORDER[c.method] + wobble(c.seed, 0.1)))
case(22, U)(lambda c: Story(hard=wobble(c.seed, 0.1), easy=wobble(c.seed, 0.1)))


def jump(at: float, before: float, after: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda steps: np.where(steps >= at, after, before)


def signals(ess: float, kl: float, reward: float) -> dict[str, Any]:
    """Lost runs whose ESS, KL and training reward move at these updates."""
    return {
        "ess_ratio": jump(ess, 0.8, 0.01),
        "kl_mu_theta_k3": jump(kl, 0.01, 1.0),
        "sampled_reward": jump(reward, 0.8, 0.1),
    }


LOW = {"ess_ratio": lambda steps: np.where((steps >= 10) & (steps < 40), 0.05, 0.8)}


@case(4, R, R, R, R, R)
def ess_first(c: Any) -> Story:
    return Story(fall=200, updates=signals(100, 150, 190)) if weak(c) else Story(updates=LOW)


@case(4, F, F, F, F, F)
def reward_first(c: Any) -> Story:
    return Story(fall=200, updates=signals(180, 150, 50)) if weak(c) else Story()


@case(4, U, U, U, U, U)
def order_varies(c: Any) -> Story:
    if weak(c):
        return Story(fall=200, updates=signals(100, 150, 120) if even(c) else signals(150, 100, 120))
    return Story(updates=LOW if c.task == "walk" and c.method == "vcpo" and c.seed < 5 else {})


case(4, U, U, F)(lambda c: Story())


def drift(slope: float, noise: float = 0.0) -> dict[str, Any]:
    def kl(steps: np.ndarray) -> np.ndarray:
        return 0.001 + 0.07 * (steps % 100) / 100

    return {
        "kl_mu_theta_k3": kl,
        "ess_ratio": lambda steps: np.exp(-24 * slope * kl(steps) + noise * np.sin(7.0 * steps)),
    }


case(5, R, R, R)(lambda c: Story(updates=drift(1 + wobble(c.seed, 0.05))))
case(5, F, F, F)(lambda c: Story(updates=drift(0.5)))
case(5, F, F, F)(lambda c: Story(updates=drift(1.0, noise=1.0)))
case(5, U, U, U)(lambda c: Story(updates=drift(1.1 + wobble(c.seed, 0.3))))

case(6, R, R)(lambda c: Story(fall=100, back=400))
case(6, F, F)(lambda c: Story(fall=100))
case(6, U, U)(lambda c: Story(fall=100 if c.seed < 3 else None))
case(6, U, U)(lambda c: Story())

DEAD = {"grad_norm": 1e-7, "kl_mu_theta_k3": 3.0, "ess_ratio": 0.01}
case(7, R, R, R)(lambda c: Story(fall=50, updates=DEAD) if weak(c) else Story())
case(7, F, F, F)(lambda c: Story(fall=50) if weak(c) else Story())
case(7, U, U, U)(lambda c: Story(fall=50, updates=DEAD if c.seed else {}) if weak(c) else Story())

case(8, R)(lambda c: Story(fall=None if c.method == "tis" else 100))
case(8, F)(lambda c: Story(fall=50 if c.method == "tis" else None))
case(8, U)(lambda c: Story(fall=100))

LIVES = {8: 50, 16: 150, 32: None}
case(9, R, R)(lambda c: Story(fall=50 if c.method == "token-tis" else LIVES[c.prompts]))
case(9, F, F)(lambda c: Story(fall=None if c.method == "token-tis" else LIVES[{8: 32, 16: 16, 32: 8}[c.prompts]]))


@case(9, U, U)
def batch_unclear(c: Any) -> Story:
    if c.method == "token-tis":
        return Story(fall=50 if even(c) else None)
    return Story(fall=LIVES[c.prompts if even(c) else {8: 32, 16: 16, 32: 8}[c.prompts]])


MEASURED = "vcpo(base=measured)"
case(15, C, R, R)(
    lambda c: Story(top=0.9 if c.method == MEASURED else 0.8, updates={"step_scale": 0.75 + wobble(c.seed, 0.02)})
)
case(15, C, F, F)(lambda c: Story(top=0.7 if c.method == MEASURED else 0.8, updates={"step_scale": 0.95}))
case(15, C, U, U)(
    lambda c: Story(
        top=0.8 + wobble(c.seed, 0.2) if c.method == MEASURED else 0.8,
        updates={"step_scale": 0.8 + wobble(c.seed, 0.1)},
    )
)


def masked(share: float) -> dict[str, Any]:
    return {"share_masked": share}


case(16, R, R)(lambda c: Story(updates=masked(0.9 if c.regime == "fifo" else 0.5)))
case(16, F, F)(lambda c: Story(updates=masked(0.5 if c.regime == "fifo" else 0.9)))
case(16, U, U)(lambda c: Story(updates=masked(0.8 + wobble(c.seed, 0.3))))

ALL = {"share_masked": jump(100, 0.5, 0.99)}
case(17, R, R)(lambda c: Story(tau=10, updates=ALL))
case(17, R, F)(lambda c: Story(tau=200, updates=ALL))
case(17, F, U)(lambda c: Story(updates=masked(0.1)))
case(17, U, U)(lambda c: Story(tau=10 if c.seed < 2 else 100, updates=ALL if c.seed < 4 else {}))

case(18, R, R, R, R)(lambda c: Story(updates={"share_clipped": 0.001 if c.method == "clip" else 0.15}))
case(18, F, F, F, F)(lambda c: Story(updates={"share_clipped": 0.1 if c.method == "clip" else 0.5}))
case(18, U, U, U, U)(
    lambda c: Story(updates={"share_clipped": (0.01 if c.method == "clip" else 0.3) * (1 + wobble(c.seed, 0.9))})
)


def sweep(c: Any, vespo: float, middle: float, sapo: float) -> float:
    """The reward at N = 4, 16 and 32, on a line in log2 N that ends at these values."""
    end = {"vespo": vespo, "sapo": sapo}.get(c.method, middle)
    return 0.9 + (end - 0.9) * np.log2((c.staleness + 1) / 4) / 3


@case(19, R, R, R, R)
def as_published(c: Any) -> Story:
    return Story(top=sweep(c, 0.88, 0.7, 0.6), fall=50 if c.method == "sapo" and c.staleness > 3 else None)


case(19, F, F, F, F)(lambda c: Story(top=sweep(c, 0.5, 0.8, 0.95)))


@case(19, U, U, U, U)
def sweep_unclear(c: Any) -> Story:
    lost = c.method == "sapo" and c.staleness > 3 and even(c)
    return Story(top=sweep(c, 0.765 + wobble(c.seed, 0.3), 0.765, 1.9), fall=50 if lost else None)


@case(20, R, R, C)
def kernels(c: Any) -> Story:
    return Story(fall=50 if "k_neg" in c.method else None, tau=200 if "k_pos" in c.method else 50)


case(20, F, F, C)(lambda c: Story(fall=50 if c.method == "vespo" else None))
case(20, U, U, C)(lambda c: Story(fall=50 if even(c) == (c.method == "vespo") else None))


@case(21, R, R, R, R, R)
def long_as_published(c: Any) -> Story:
    fall = {"cispo": 400, "gspo": 1200}.get(c.method)
    return Story(fall=fall, tau=400 if c.method == "topr" else 50, entropy=jump(1100, 1.0, 3.0))


case(21, F, F, U, F, F)(lambda c: Story(tau=10 if c.method == "topr" else 100))
case(21, F, R, F, F, U)(lambda c: Story(fall=400 if c.method == "gspo" else None))


@case(21, U, U, U, U, U)
def long_unclear(c: Any) -> Story:
    fall = {("cispo", 0): 400, ("cispo", 2): 400, ("gspo", 1): 400, ("gspo", 3): 400}.get((c.method, c.seed))
    tau = {"topr": 20 if even(c) else 100}.get(c.method, 50)
    return Story(fall=fall, tau=tau, entropy=jump(1100, 1.0, 3.0 if even(c) else 1.0))


def truncated(ess: float) -> dict[str, Any]:
    return {"ess_ratio": ess, "length_mean": jump(90, 12.0, 23.0)}


case(24, R)(lambda c: Story(fall=100 if c.seed == 0 else None, updates=truncated(0.95)))
case(24, F)(lambda c: Story(fall=100, updates=truncated(0.5)))
case(24, F)(lambda c: Story(fall=100, updates={"ess_ratio": 0.95}))
case(24, U)(lambda c: Story(fall=100 if c.seed == 0 else None, updates=truncated(0.5)))
case(24, U)(lambda c: Story())


@pytest.mark.parametrize(("number", "tell", "expected"), CASES, ids=[f"{c[0]}-{'-'.join(c[2])}" for c in CASES])
def test_the_judge_says_what_this_world_shows(number: int, tell: Callable[[Any], Story], expected: list[str]) -> None:
    fact = FACTS[number]
    parts = fact.judge(tables(fact.blocks, tell))
    assert [part.verdict for part in parts] == expected, "\n".join(f"{part.name}: {part.figure}" for part in parts)
    assert all("nan" not in part.figure.lower() for part in parts)


def test_every_part_that_can_be_tested_has_been_seen_to_say_yes_no_and_perhaps() -> None:
    seen: dict[tuple[int, int], set[str]] = defaultdict(set)
    for number, _, verdicts in CASES:
        for place, verdict in enumerate(verdicts):
            seen[number, place] |= {verdict}
    assert {number for number, _ in seen} == {n for n, fact in FACTS.items() if fact.blocks} - {14}
    seen.pop((4, 2), None)
    for key, verdicts in seen.items():
        assert verdicts == {C} or verdicts >= {R, F, U}, key

"""The mismatch by component: known numbers, contributions that add and that do not, and what cannot be switched."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.policies.truncation import Truncation
from vcpo_bench.bench.replay.mismatch import COMPONENTS, MismatchSetup, attribute, open_setup
from vcpo_bench.bench.replay.mismatch.attribute import ALL, EXACT
from vcpo_bench.bench.replay.mismatch.gaps import Sum, ess_at, gap_of, sum_of_squares
from vcpo_bench.bench.replay.mismatch.setup import Drawn
from vcpo_bench.bench.replay.mismatch.table import lines, read_components
from vcpo_bench.bench.samplers.engines.base import PolicyEngine
from vcpo_bench.errors import UsageError


def config(task: str = "walk", prompts: int = 64) -> CellConfig:
    return CellConfig(method="reinforce", staleness=0, seed=0, task=task, prompts=prompts, responses=4)


@pytest.fixture(scope="module")
def setup() -> MismatchSetup:
    return open_setup(config(), None, 0)


def alone(setup: MismatchSetup, name: str) -> Drawn:
    return setup.draw(COMPONENTS.parse(name).switched(setup.exact, setup))


def test_the_exact_path_is_exact_and_paths_share_prompts_and_noise(setup: MismatchSetup) -> None:
    exact = gap_of(setup.draw(setup.exact))
    assert exact.sd < 2e-6
    assert exact.outside == 0
    assert exact.tokens == 64 * 4 * 12
    assert torch.equal(setup.draw(setup.exact).log_ratio, setup.draw(setup.exact).log_ratio)


def test_top_p_meets_the_known_numbers(setup: MismatchSetup) -> None:
    """Of the page on staleness, from training batches: mean ratio 0.948, 23% outside; here on held-out prompts."""
    drawn = alone(setup, "top-p(0.8)")
    ratio = drawn.log_ratio[drawn.mask].exp()
    assert float(ratio.mean()) == pytest.approx(0.948, abs=0.02)
    assert gap_of(drawn).outside == pytest.approx(0.23, abs=0.06)
    assert float(ratio.min()) >= 0.8 - 1e-5


def test_rounding_meets_the_known_numbers(setup: MismatchSetup) -> None:
    """bf16 3.8e-3 nats with the head, a little less without; fp16 has three more bits."""
    body, head = gap_of(alone(setup, "weights")), gap_of(alone(setup, "head"))
    assert math.hypot(body.sd, head.sd) == pytest.approx(3.8e-3, rel=0.15)
    assert head.sd < body.sd
    assert gap_of(alone(setup, "weights(fp16)")).sd == pytest.approx(body.sd / 8, rel=0.3)


def test_a_component_changes_nothing_else(setup: MismatchSetup) -> None:
    exact = setup.exact.weights
    body = COMPONENTS.parse("weights").switched(setup.exact, setup).weights
    head = COMPONENTS.parse("head").switched(setup.exact, setup).weights
    assert setup.head == {"head.weight", "head.bias"}
    for name, weight in exact.items():
        assert torch.equal(body[name], weight) or name not in setup.head
        assert torch.equal(head[name], weight) or name in setup.head
    assert not torch.equal(head["head.weight"], exact["head.weight"])


def test_rounded_caches_are_read(setup: MismatchSetup) -> None:
    coarse, fine = gap_of(alone(setup, "kv-cache(fp8)")).sd, gap_of(alone(setup, "kv-cache(fp16)")).sd
    assert coarse > 30 * fine > 30 * gap_of(setup.draw(setup.exact)).sd

    same = setup.draw(replace(setup.exact, after_token=lambda decoding: None))
    assert gap_of(same).sd < 2e-6, "token by token is the same path"


def test_batching_is_only_rounding(setup: MismatchSetup) -> None:
    assert gap_of(alone(setup, "batching(prompts=3)")).sd < 2e-6


def test_lag_is_that_of_the_weights_before_the_updates() -> None:
    near, far = (open_setup(config(), None, k) for k in (1, 4))
    assert all(torch.equal(near.older[name], far.older[name]) for name in near.older)
    drawn = alone(far, "lag(4)")
    start = open_setup(config(), None, 0).exact.weights
    assert all(torch.equal(far.older[name], weight) for name, weight in start.items())
    assert gap_of(drawn).sd > gap_of(alone(near, "lag(1)")).sd > 1e-4
    assert gap_of(drawn).kl_k3 == pytest.approx(gap_of(drawn).sd ** 2 / 2, rel=0.2)
    assert gap_of(far.draw(far.exact)).sd < 2e-6, "the exact path holds the newest weights"


def test_the_table_has_every_component_and_says_what_cannot_be_switched(setup: MismatchSetup) -> None:
    class Engine(PolicyEngine):
        def advance(self, *_: object) -> None:
            raise AssertionError

    engine = Engine(setup.policy, True)
    with_engine = replace(setup, engine=engine)
    chosen = read_components("weights,kv-cache,top-p(0.9),batching")
    found = attribute(with_engine, chosen, [12, 100])
    assert [row.path for row in found.rows] == [EXACT, "weights", "kv-cache", "top-p(p=0.9)", "batching", ALL]
    assert [bool(row.why_not) for row in found.rows] == [False, False, True, True, False, False]
    text = list(lines(found))
    assert sum("cannot be switched" in line for line in text) == 2
    assert "~" in text[1]
    assert found.facts()["rows"][2] == {"path": "kv-cache", "share": None, "extrapolated_lengths": []} | {
        "why_not": "the engine's cache has the precision it was started with"
    }
    assert found.rows[1].share == pytest.approx(1, abs=0.2)


def synthetic(*parts: Callable[[Tensor], Tensor]) -> Drawn:
    """512 rows of 16 tokens whose gap is a sum of parts, each a function of the same normal numbers."""
    random = torch.Generator().manual_seed(0)
    total = torch.zeros(512, 16, dtype=torch.float64)
    for part in parts:
        total += part(torch.randn(512, 16, 3, generator=random, dtype=torch.float64))
        random.manual_seed(0)
    return Drawn(total, torch.ones(512, 16, dtype=torch.bool))


def test_independent_parts_add_up_and_equal_ones_do_not() -> None:
    one, other = (lambda x: 0.1 * x[..., 0]), (lambda x: 0.2 * x[..., 1])
    exact = synthetic(lambda x: 1e-9 * x[..., 2])
    added = sum_of_squares(exact, [synthetic(one), synthetic(other)], synthetic(one, other), 64)
    assert added.verdict == "add up"
    assert added.low < 1 < added.high
    doubled = sum_of_squares(exact, [synthetic(one), synthetic(one)], synthetic(one, one), 64)
    assert doubled.value == pytest.approx(0.5, rel=1e-6)
    assert doubled.verdict == "do not add up"
    nothing = Drawn(torch.zeros(64, 4, dtype=torch.float64), torch.ones(64, 4, dtype=torch.bool))
    assert sum_of_squares(nothing, [nothing, nothing], nothing, 64).verdict == "undecided"
    assert Sum(1.0, 0.5, 1.5).verdict == "undecided"


def test_statistics_by_hand() -> None:
    gaps = torch.tensor([[math.log(2), 0.0], [0.0, 0.0]], dtype=torch.float64)
    drawn = Drawn(gaps, torch.tensor([[True, True], [True, False]]))
    gap = gap_of(drawn)
    assert gap.tokens == 3
    assert gap.mean == pytest.approx(math.log(2) / 3)
    assert gap.outside == pytest.approx(1 / 3)
    assert gap.kl_k3 == pytest.approx((1 - math.log(2)) / 3)
    assert ess_at(drawn, 2) == (pytest.approx((2 + 1) ** 2 / (2 * (4 + 1))), True)
    assert ess_at(drawn, 100) == (pytest.approx(math.exp(-100 * gap.sd**2)), False)


@dataclass(frozen=True, kw_only=True)
class Half(COMPONENTS.base):  # type: ignore[name-defined, misc]
    """Half of the vocabulary, as a plug-in would add it."""

    name = "half"
    summary = "only the most likely two tokens"

    def switched(self, path, setup):  # type: ignore[no-untyped-def]
        return replace(path, truncation=Truncation(1.0, 2))


def test_another_component_is_one_class(setup: MismatchSetup) -> None:
    assert gap_of(setup.draw(Half().switched(setup.exact, setup))).mean < -0.01


@pytest.mark.parametrize(
    ("text", "said"), [("", "missing"), ("weights,weights(fp16)", "named twice"), ("kv", "kv"), ("lag(0)", "1 or more")]
)
def test_bad_lists_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_components(text)


def test_tasks_with_an_environment_are_refused() -> None:
    with pytest.raises(UsageError, match="has an environment"):
        open_setup(config("lookup"), None, 0)


def test_responses_of_variable_length_count_only_their_tokens() -> None:
    setup = open_setup(config("walk-eos", prompts=16), None, 0)
    drawn = alone(setup, "kv-cache(bf16)")
    assert 16 * 4 < gap_of(drawn).tokens < 16 * 4 * 24
    assert not drawn.log_ratio[~drawn.mask].any()

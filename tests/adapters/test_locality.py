"""The locality table against measurement: cut batches into groups and rows, and see whose coefficients change."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from vcpo_bench.adapters.locality import Locality, locality_of
from vcpo_bench.methods import (
    Aggregation,
    Baseline,
    Batch,
    Method,
    Update,
    WeightMethod,
    method_names,
    parse_method,
    part_names,
)
from vcpo_bench.methods.core.reach import Scope

P, G, T = 4, 5, 6
VARIANTS = [
    "tis(normalize=on)", "tis(level=token,normalize=counted)", "gepo(scope=batch)", "gepo(variant=expected)",
    "decoupled(proximal=loglinear)", "decoupled(proximal=linear)", "decoupled(proximal=behavior)",
    "vcpo(baseline=group,ess=off)", "clip+ess(base=measured)", "reinforce+opob(scope=batch)",
    "reinforce+rpp(group=on)", "clip+psis", "rec(mask=one-side)", "m2po(sign=first)", "fipo(high_only=off)",
    "reinforce+kl(into=advantage)", "vespo+otb(weights=on)",
]  # fmt: skip
PARTS = [f"reinforce+{name}" for name in part_names() if name not in ("lr-matched", "lr-shuffled")]
PARTS = [text for text in PARTS if text.partition("+")[2] not in method_names()]
EVERY = [*method_names(), *PARTS, *VARIANTS]
BASELINES = {part.text(): part for part in (parse_method(text).parts.baseline for text in EVERY)}
AGGREGATIONS = {part.text(): part for part in (parse_method(text).parts.aggregation for text in EVERY)}
PLAIN = parse_method("reinforce+token-sum")


def batches() -> Iterator[Batch]:
    """From nearly on policy to far off it, with vanished tokens, a prompt without signal, and mixed versions.

    In the last one few tokens are off and the rest is not: what a bound searched per batch needs to act.
    """
    for seed, (spread, outliers) in enumerate(((0.02, 0.0), (0.3, 0.0), (0.6, 0.0), (1.5, 0.0), (0.02, 0.3))):
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int, generator: torch.Generator = generator) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        logp = -0.1 - 2.0 * torch.rand(P, G, T, generator=generator, dtype=torch.float64)
        logp[0, :, 0] = -8.0
        reward = torch.randint(0, 2, (P, G), generator=generator).double()
        reward[2], reward[3, 1:], reward[3, 0] = 1.0, 0.0, 1.0
        length = torch.randint(2, T + 1, (P, G), generator=generator)
        far = torch.rand(P, G, T, generator=generator) < outliers
        behavior = (logp - torch.where(far, 0.6, spread) * normal(P, G, T)).clamp(max=-1e-3)
        yield Batch(
            logp=logp,
            behavior_logp=behavior,
            mask=torch.arange(T) < length.unsqueeze(-1),
            valid=torch.ones(P, G, dtype=torch.bool),
            reward=reward,
            version=torch.randint(0, 12, (P, G, 1), generator=generator).expand(P, G, T).contiguous(),
            now=12,
            advantage=(normal(P, G, 1)).expand(P, G, T).contiguous(),
            proximal_logp=(logp - spread / 2 * normal(P, G, T)).clamp(max=-1e-3),
            reference_logp=(logp - spread * normal(P, G, T)).clamp(max=-1e-3),
            entropy=torch.rand(P, G, T, generator=generator, dtype=torch.float64),
            sum_pi_sq=torch.rand(P, G, T, generator=generator, dtype=torch.float64),
            vocabulary_logp=torch.randn(P, G, T, 4, generator=generator, dtype=torch.float64).log_softmax(-1),
            behavior_vocabulary_logp=torch.randn(P, G, T, 4, generator=generator, dtype=torch.float64).log_softmax(-1),
            score_norm_sq=0.1 + torch.rand(P, G, generator=generator, dtype=torch.float64),
            parameter_distance=0.1 + torch.rand(P, G, generator=generator, dtype=torch.float64),
            update_norm=0.2,
            void_turn=torch.arange(P * G).view(P, G) % 5 == 1,
        )


def cut(batch: Batch, prompts: slice, responses: slice) -> Batch:
    values = {each.name: getattr(batch, each.name) for each in fields(batch)}
    return Batch(
        **{
            name: value[prompts, responses] if isinstance(value, Tensor) else value
            for name, value in values.items()
            if name != "rows"
        }
    )


def pieces(scope: Scope) -> Iterator[tuple[slice, slice]]:
    for prompt in range(P):
        for start in range(G) if scope is Scope.ROW else [0]:
            yield slice(prompt, prompt + 1), slice(start, start + 1) if scope is Scope.ROW else slice(0, G)


def differs(one: Tensor, other: Tensor) -> bool:
    return not torch.allclose(one, other, rtol=1e-9, atol=1e-12)


def scope_of(answer: Callable[[Batch], Tensor], given: Callable[[Batch], Batch]) -> Scope:
    """The narrowest cut that changes nothing in any of the batches."""
    found = Scope.ROW
    for batch in map(given, batches()):
        whole = answer(batch)
        for scope in (Scope.ROW, Scope.GROUP):
            if scope < found:
                continue
            together = torch.empty_like(whole)
            for prompts, responses in pieces(scope):
                together[prompts, responses] = answer(cut(batch, prompts, responses))
            if differs(together, whole):
                found = Scope(scope + 1)
        if found is Scope.BATCH:
            break
    return found


def changes(answer: Callable[[Batch], Tensor], change: Callable[[Batch], Batch]) -> bool:
    return any(differs(answer(batch), answer(change(batch))) for batch in batches())


def other_rewards(batch: Batch) -> Batch:
    return replace(batch, reward=batch.reward.flip(1) * 0.3 - 0.1 * torch.arange(G))


def other_versions(batch: Batch) -> Batch:
    return replace(batch, version=batch.version // 3 + 7)


def coefficients(method: Method) -> Callable[[Batch], Tensor]:
    """At the second update of a method that remembers: the first one may only set what the others compare with."""
    state = method(list(batches())[2]).state if "state" in method.needs else {}
    return lambda batch: method(replace(batch, state=state)).coefficients


def scale(method: Method) -> Callable[[Batch], Tensor]:
    return lambda batch: method(batch).step_scale


def with_token_sum(method: Method) -> Method:
    others = tuple(part for part in method.extras if part.slot != "aggregation")
    return replace(method, extras=(*others, *PLAIN.extras))


@pytest.fixture(params=EVERY)
def method(request: pytest.FixtureRequest) -> Method:
    return parse_method(request.param)


@pytest.fixture
def declared(method: Method) -> Locality:
    return locality_of(method)


def test_scope_and_reads_of_the_loss_are_as_measured(method: Method, declared: Locality) -> None:
    answer = coefficients(with_token_sum(method))
    assert scope_of(answer, lambda batch: batch) == declared.loss
    assert changes(answer, other_rewards) == ("reward" in declared.reads)
    assert changes(answer, other_versions) == ("version" in declared.reads)


@pytest.mark.parametrize("baseline", BASELINES.values(), ids=BASELINES)
def test_scope_of_baseline_is_as_measured(baseline: Baseline) -> None:
    method = replace(PLAIN, extras=(*PLAIN.extras, baseline))
    measured = scope_of(coefficients(method), lambda batch: replace(batch, advantage=None))
    assert measured == locality_of(method).baseline


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_scope_of_aggregation_is_as_measured(aggregation: Aggregation) -> None:
    method = parse_method("reinforce")
    method = replace(method, extras=(aggregation,))
    assert scope_of(coefficients(method), lambda batch: batch) == locality_of(method).aggregation


def test_a_step_scale_other_than_one_is_declared(method: Method, declared: Locality) -> None:
    answer = scale(method)
    if method.parts.step.name == "length-surge":
        return  # it acts after its window: tests/methods/test_step_rules.py
    assert any(float(answer(batch)) != 1.0 for batch in batches()) == declared.scales_step
    assert changes(answer, other_versions) == bool(declared.step_reads - ({"version"} if _starts(method) else set()))


def _starts(method: Method) -> bool:
    """A measured base reads versions from the second batch on, when one on policy has set it."""
    return "measured" in method.canonical


def test_the_measured_base_reads_versions() -> None:
    method = parse_method("clip+ess(base=measured)")
    assert locality_of(method).step_reads == {"version"}
    assert locality_of(method).state
    batch = next(batches())
    fresh = method(replace(batch, version=torch.full_like(batch.version, 12)))
    assert float(fresh.state["ess.base"]) > 0
    assert float(method(batch).state["ess.base"]) == 0


def test_needs_are_those_that_the_method_misses(method: Method, declared: Locality) -> None:
    batch = next(batches())
    optional = {"score_norm_sq", "sum_pi_sq", "entropy", "proximal_logp", "reference_logp"}
    optional |= {"parameter_distance", "update_norm", "void_turn"}
    optional |= {"vocabulary_logp", "behavior_vocabulary_logp"}
    bare = replace(batch, advantage=None, **dict.fromkeys(optional - declared.needs))
    assert isinstance(method(bare), Update)


def test_everything_is_supposed_of_a_component_from_elsewhere() -> None:
    class Elsewhere(type(parse_method("tis"))):  # type: ignore[misc]
        __module__ = "somebody.elses"

    declared = locality_of(Elsewhere())
    assert declared.loss == declared.whole == Scope.BATCH
    assert declared.reads == {"reward", "version"}


def test_the_entropy_bonus_and_the_gradient_rule_are_known() -> None:
    assert locality_of(parse_method("clip+entropy")).entropy_bonus
    assert not locality_of(parse_method("clip+kl")).entropy_bonus
    assert locality_of(parse_method("gac")).acts_on_gradient
    assert not locality_of(parse_method("clip")).acts_on_gradient
    assert locality_of(parse_method("clip+lr-matched")).borrows == "vcpo"


def test_weights_added_with_plus_reach_as_far_as_alone() -> None:
    weights = [name for name in method_names() if isinstance(parse_method(name), WeightMethod)]
    assert "snis" in weights
    for name in weights:
        assert locality_of(parse_method(f"clip+{name}")).loss == locality_of(parse_method(name)).loss

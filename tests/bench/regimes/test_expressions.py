"""How regimes are spelled, what they say of themselves, and what they refuse."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from regime_expressions import regimes

from vcpo_bench.bench.regimes import REGIMES, CellShape, check_method
from vcpo_bench.bench.regimes.fifo import Fifo
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.errors import ExpressionError

SHAPE = CellShape(seed=0, prompts=4, responses=2, tokens=12)


@pytest.mark.parametrize(
    ("typed", "canonical"),
    [
        (" fifo ", "fifo"),
        ("fifo()", "fifo"),
        ("fifo(ramp)", "fifo"),
        ("fifo(fill=hold)", "fifo(fill=hold)"),
        ("minibatch(2)", "minibatch(epochs=2)"),
        ("random(uniform)", "random"),
        ("random(two-point, share=0.20)", "random(law=two-point,share=0.2)"),
        ("random(share=1/3)", "random(share=0.333333)"),
        ("random(mean=1e-7)", "random(mean=1e-07)"),
        ("inflight(cache=recompute,every=3)", "inflight(cache=recompute,every=3)"),
        ("fifo(engine_noise=0.050,publish_every=1)", "fifo(engine_noise=0.05)"),
        ("fifo(engine_noise=0)", "fifo"),
        ("replay(0.25)", "replay(fraction=0.25)"),
        ("async(drop,slots=4,sampler=2.50)", "async(overflow=drop,sampler=2.5,slots=4)"),
    ],
)
def test_one_spelling(typed: str, canonical: str) -> None:
    assert REGIMES.parse(typed).text() == canonical
    assert REGIMES.parse(canonical).text() == canonical


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_text_and_object_agree(data: st.DataObject) -> None:
    regime = data.draw(st.sampled_from(REGIMES.names()).flatmap(regimes))
    assert REGIMES.parse(regime.text()) == regime


@pytest.mark.parametrize("name", REGIMES.names())
def test_lag_zero_has_one_name(name: str) -> None:
    assert REGIMES.parse(name).at(0).text() == "fifo"
    noisy = REGIMES.parse(f"{name}(engine_noise=bf16,publish_every=3)")
    assert noisy.at(0) == Fifo(engine_noise="bf16", publish_every=3)
    assert noisy.at(2) is noisy
    cut = REGIMES.parse(f"{name}(top_p=0.8,top_k=5,mask_replay=on)")
    assert cut.at(0).text() == "fifo(mask_replay=on,top_k=5,top_p=0.8)"


def test_options_that_do_not_fit_are_no_obstacle_at_lag_zero() -> None:
    for text in ("minibatch(epochs=3)", "inflight(every=2)", "random(trace=[9])"):
        assert type(REGIMES.parse(text).schedule(0, SHAPE)) is type(Fifo().schedule(0, SHAPE))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("fiffo", "unknown regime 'fiffo'; did you mean fifo"),
        ("fifo(", "never closed"),
        ("fifo:paper", "after the name of a regime"),
        ("fifo(fill=held)", "did you mean hold"),
        ("fifo(fil=hold)", "did you mean fill"),
        ("minibatch(epochs=0)", "epochs must be a whole number, 1 or more"),
        ("random(gaussian)", "law must be uniform"),
        ("random(trace)", "give a file"),
        ("random(trace=missing.txt)", "missing.txt"),
        ("random(trace=[1 -1])", "0 or more"),
        ("random(share=1)", "from 0 to below 1"),
        ("random(share=0.99999999)", "from 0 to below 1"),
        ("random(mean=inf)", "mean must be a finite number, 0 or more"),
        ("replay(fraction=nan)", "fraction must be a number"),
        ("fifo(engine_noise=fp4)", "engine_noise=fp4"),
        ("fifo(engine_noise=-1)", "engine_noise=-1"),
        ("fifo(top_p=0)", "top_p must be a number above 0, at most 1"),
        ("fifo(mask_replay=on)", "nothing to replay; add top_p= or top_k="),
        ("fifo(publish_every=1,publish_every=2)", "twice"),
    ],
)
def test_bad_regimes_are_one_clear_line(typed: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        REGIMES.parse(typed)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("noise", ["0.10", "-1", "loud", 0.1, "nan"])
def test_engine_noise_given_from_python_is_spelled_as_its_text(noise: object) -> None:
    with pytest.raises(UsageError, match="engine_noise"):
        Fifo(engine_noise=noise)  # type: ignore[arg-type]
    assert Fifo(engine_noise="0.1").text() == "fifo(engine_noise=0.1)"


@pytest.mark.parametrize(
    ("typed", "deterministic", "needs_process", "asynchronous", "splits_responses", "keeps_cache"),
    [
        ("fifo", True, False, False, False, True),
        ("replay", True, False, False, False, True),
        ("async", False, True, True, False, True),
        ("async(clock=virtual)", True, False, True, False, True),
        ("inflight", True, False, False, True, True),
        ("inflight(cache=recompute)", True, False, False, True, False),
    ],
)
def test_a_regime_says_what_it_needs(
    typed: str, deterministic: bool, needs_process: bool, asynchronous: bool, splits_responses: bool, keeps_cache: bool
) -> None:
    regime = REGIMES.parse(typed)
    assert regime.deterministic == deterministic
    assert regime.needs_process == needs_process
    assert regime.asynchronous == asynchronous
    assert regime.splits_responses == splits_responses
    assert regime.keeps_cache == keeps_cache


def test_service_times_have_a_unit_only_under_the_virtual_clock() -> None:
    wall, virtual = REGIMES.parse("async(sampler=3)"), REGIMES.parse("async(clock=virtual,sampler=3,slots=2)")
    assert wall.service is not None
    assert (wall.service.times.sampler, wall.service.times.learner, wall.service.slots) == (3, 0, 0)
    assert virtual.service is not None
    assert (virtual.service.times.sampler, virtual.service.times.learner, virtual.service.slots) == (3, 1, 2)


@pytest.mark.parametrize(
    ("typed", "several_updates", "trains_once", "planned"),
    [
        ("minibatch", True, True, True),
        ("minibatch(epochs=2)", True, False, True),
        ("fifo", False, True, True),
        ("replay", False, False, True),
        ("replay(fraction=0)", False, True, True),
        ("async(clock=virtual)", False, True, False),
    ],
)
def test_a_schedule_says_how_data_are_used(typed: str, several_updates: bool, trains_once: bool, planned: bool) -> None:
    schedule = REGIMES.parse(typed).schedule(3, SHAPE)
    assert (schedule.several_updates, schedule.trains_once, schedule.planned) == (several_updates, trains_once, planned)


def test_a_proximal_policy_exists_only_where_a_rollout_feeds_several_updates() -> None:
    needs = frozenset({"proximal_logp"})
    check_method("x", needs, REGIMES.parse("minibatch").schedule(3, SHAPE))
    for text, k in (("minibatch", 0), ("fifo", 3), ("random", 3)):
        subject = REGIMES.parse(text).schedule(k, SHAPE)
        with pytest.raises(UsageError, match="proximal"):
            check_method("x", needs, subject)
        check_method("x", frozenset(), subject)


@pytest.mark.parametrize("name", REGIMES.names())
def test_only_real_asynchrony_needs_a_process(name: str) -> None:
    assert REGIMES.parse(name).needs_process == (name == "async")
    assert not REGIMES.parse("async(clock=virtual,sampler=1)").needs_process

"""Sampler expressions, what each sampler says of itself, and what it refuses."""

from dataclasses import replace
from typing import Any

import pytest

from vcpo_bench.bench.cells.config import CellConfig
from vcpo_bench.bench.cells.opening import open_policy, open_sampler, open_task
from vcpo_bench.bench.samplers.catalog import SAMPLERS, Sampler, SamplingJob
from vcpo_bench.bench.samplers.engine_sampler import EngineSampler
from vcpo_bench.errors import UsageError

JOB = SamplingJob(
    prompt_length=4, max_response=8, responses=16, adapters=False, publish_every=1, keeps_cache=False, regime="fifo"
)


@pytest.mark.parametrize(
    ("expression", "canonical"),
    [
        ("torch", "torch"),
        (" torch( slots = 0 ) ", "torch"),
        ("torch(slots=64)", "torch(slots=64)"),
        ("vllm", "vllm"),
        ("vllm( dtype = bfloat16 )", "vllm(dtype=bfloat16)"),
        ("vllm(dtype=learner,memory=0)", "vllm"),
        ("vllm(memory=2.5)", "vllm(memory=2.5)"),
        ("vllm-server(weights=nccl, pause=abort)", "vllm-server(pause=abort,weights=nccl)"),
        ("vllm-server(weights=disk,pause=wait)", "vllm-server"),
        ("generate()", "generate"),
        ("graph(slots=0)", "graph"),
        ("torch(top_p=1,top_k=0)", "torch"),
        ("generate(truncate=allow,top_p=0.90,top_k=5)", "generate(top_k=5,top_p=0.9,truncate=allow)"),
    ],
)
def test_equal_meaning_is_equal_text(expression: str, canonical: str) -> None:
    sampler = SAMPLERS.parse(expression)
    assert sampler.text() == canonical
    assert SAMPLERS.parse(canonical) == sampler


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("torhc", "unknown sampler 'torhc'; did you mean torch"),
        ("vllm(top_p=0.9)", "vllm has no parameter 'top_p'"),
        ("vllm(dtype=int8)", r"dtype must be learner \| float32 \| bfloat16"),
        ("vllm(memory=-1)", "memory must be a number from 0"),
        ("vllm(memory=inf)", "memory must be a number from 0"),
        ("vllm-server(pause=stop)", r"pause must be wait \| keep \| abort"),
        ("torch(slots=-1)", "slots must be a whole number, 0 or more"),
        ("torch(slots=many)", "slots=many is not legal"),
        ("torch(beams=4)", "torch has no parameter 'beams'"),
        ("torch(top_p=0)", "top_p must be a number above 0, at most 1"),
        ("torch(top_p=0.95)", "truncate=allow"),
        ("generate(top_k=20)", "truncate=allow"),
        ("generate(slots=4)", "generate has no parameter 'slots'"),
        ("torch(64)", "expected key=value; torch takes:"),
    ],
)
def test_what_cannot_be_used_is_named(expression: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        SAMPLERS.parse(expression)
    assert "\n" not in str(caught.value)


def test_what_each_sampler_says_of_itself() -> None:
    found = {name: SAMPLERS.parse(name) for name in SAMPLERS.names()}
    external = {name for name, sampler in found.items() if isinstance(sampler, EngineSampler)}
    assert external >= {"vllm", "vllm-server"}
    for name, sampler in found.items():
        assert sampler.summary
        assert sampler.exact == (name not in external)
        assert sampler.workers(4) == (1 if name in external else 4)
        assert not sampler.truncates
    assert SAMPLERS.parse("torch(slots=64)").at_once == 64
    assert SAMPLERS.parse("generate").at_once == 0
    assert SAMPLERS.parse("graph").at_once == 256
    assert SAMPLERS.parse("torch(top_k=2,truncate=allow)").truncates


@pytest.mark.parametrize(
    ("expression", "changed", "message"),
    [
        ("vllm", {"adapters": True}, "cannot push LoRA adapters; drop --lora"),
        ("vllm-server", {"adapters": True}, "cannot push LoRA adapters; drop --lora"),
        ("vllm", {"publish_every": 2}, "publish_every=2; use 1"),
        ("vllm-server", {"keeps_cache": True, "regime": "inflight"}, "--regime inflight: a server cannot stop"),
    ],
)
def test_a_cell_that_an_engine_cannot_sample_is_refused(expression: str, changed: dict[str, Any], message: str) -> None:
    sampler = SAMPLERS.parse(expression)
    assert isinstance(sampler, EngineSampler)
    sampler.check(JOB)
    with pytest.raises(UsageError, match=message):
        sampler.check(SamplingJob(**({name: getattr(JOB, name) for name in SamplingJob.__slots__} | changed)))


def test_only_samplers_of_language_models_refuse_the_tiny_policy() -> None:
    for name in SAMPLERS.names():
        config = CellConfig(method="vcpo", staleness=0, seed=0, sampler=name)
        task = open_task(config, None)
        policy = open_policy(config, task, None)
        if SAMPLERS.get(name).needs_language_model:
            with pytest.raises(UsageError, match=f"--sampler {name}: needs a language model"):
                open_sampler(config, task, policy)
        else:
            assert open_sampler(config, task, policy) is None


def test_an_engine_has_room_for_all_responses_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[SamplingJob] = []
    monkeypatch.setattr(SAMPLERS.get("generate"), "open", lambda self, policy, job: jobs.append(job))
    for regime in ("fifo", "inflight"):
        config = CellConfig(method="clip", staleness=4, seed=0, prompts=2, responses=3, regime=regime)
        task = open_task(config, None)
        policy = open_policy(config, task, None)
        open_sampler(replace(config, sampler="generate", model="m@0"), task, policy)
    assert [job.responses for job in jobs] == [6, 6 * 5], "in flight: those of lags 0 to 4"
    assert [job.keeps_cache for job in jobs] == [False, True]


def test_by_default_the_policy_samples_itself() -> None:
    config = CellConfig(method="vcpo", staleness=0, seed=0)
    policy = open_policy(config, open_task(config, None), None)
    assert Sampler().open(policy, JOB) is None
    assert Sampler().sampling().loop is None

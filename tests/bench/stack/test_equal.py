"""A cell of a stack has the bits it has alone: every column, the weights, the optimizer, the queue."""

import os

import pytest
from stacked_cells import alone, cell, differences, stacked

from vcpo_bench.bench.stack.eligible import shape_of, why_not_stacked
from vcpo_bench.bench.stack.stack import Stack
from vcpo_bench.bench.training.build import build_trainer
from vcpo_bench.bench.training.trainer import Trainer
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import method_names, parse_method

pytestmark = pytest.mark.usefixtures("few_questions")

PARTS = 8
"""Parts of the longest test, each with every eighth method."""


def every_method() -> list[str]:
    """Every method of a fifo, and parts of every kind that keep state or read more evidence."""
    named = [parse_method(name) for name in method_names()]
    parts = ["clip+ess(base=measured)", "reinforce+gac", "clip+kl(beta=0.1)", "reinforce+entropy(beta=0.02)", "vcpo"]
    texts = [method.canonical for method in named if "proximal_logp" not in method.needs]
    return list(dict.fromkeys([*texts, *(parse_method(part).canonical for part in parts)]))


def test_which_methods_are_never_in_a_stack_and_why() -> None:
    """Every other method is in `every_method`, and `check` compares it."""
    refused = {name: reason for name in method_names() if (reason := why_not_stacked(cell(name)))}
    weights = "its method measures how far the weights have moved"
    drift = dict.fromkeys(["dc-asgd", "drift-cap", "gap-aware", "update-norm"], weights)
    assert refused == drift | {"sis": "its method reads whole distributions"}
    compared = set(every_method())
    left_out = {name for name in method_names() if parse_method(name).canonical not in compared}
    assert left_out == {"decoupled"}
    # what it reads exists only in cells that are not stacked: a regime with several updates a batch
    with pytest.raises(UsageError, match="needs a proximal policy"):
        build_trainer(cell("decoupled"))
    assert "does not draw whole batches" in why_not_stacked(cell("decoupled", regime="minibatch", lag=1))


def check(methods: list[str], updates: int, **more: object) -> None:
    configs = [
        cell(method, seed=number % 2, lag=(0, 1, 3)[number % 3], lr=(1e-3, 3e-3)[number % 2], **more)
        for number, method in enumerate([*methods, methods[0], methods[0]])
    ]
    shapes: dict[object, list] = {}
    for config in configs:
        if not why_not_stacked(config):
            shapes.setdefault(shape_of(config), []).append(config)
    assert shapes
    for group in shapes.values():
        for trainer in stacked(group, updates):
            assert not differences(trainer, alone(trainer.config, updates)), trainer.config.label


def test_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trainer, "_evaluate", lambda self: None)  # most of the time; other tests compare them
    monkeypatch.setattr(Stack, "_evaluate", lambda self, cells: None)
    check(every_method(), 2)


def test_evaluations_too() -> None:
    check(["clip", "vespo", "clip+ess(base=measured)", "reinforce+gac"], 5)


@pytest.mark.parametrize("record", [pytest.param("basic", marks=pytest.mark.slow), "full"])
def test_score_norms(record: str) -> None:
    check(["vcpo", "vcpo+entropy(beta=0.02)"], 4, record=record)


def test_every_record_level_but_score_norms() -> None:
    check(["stapo", "reinforce"], 4, record="diagnostics")


def test_responses_that_end() -> None:
    check(["clip", "reinforce+entropy(beta=0.02)"], 4, task="walk-eos", prompts=3, responses=5)


def test_one_response_per_prompt() -> None:
    check(["reinforce"], 3, prompts=4, responses=1)


def test_weight_decay_and_a_noisy_engine() -> None:
    check(["clip+kl(beta=0.1)"], 4, weight_decay=0.1, regime="fifo(engine_noise=0.05)")


@pytest.mark.parametrize("optimizer", ["adamw(beta2=0.98,reset=2)", "sgd(momentum=0.9)", "muon"])
def test_every_optimizer(optimizer: str) -> None:
    check(["clip"], 4, optimizer=optimizer, weight_decay=0.1)


def test_on_a_gpu_only_the_default_optimizer_is_stacked() -> None:
    assert not why_not_stacked(cell("clip", device="cuda"))
    assert why_not_stacked(cell("clip", device="cuda", optimizer="muon")) == (
        "on a GPU the optimizer of a stack is adamw with its defaults"
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_method_over_many_updates(part: int) -> None:
    """40 updates, and 300 with `HARDENING=long`."""
    check(every_method()[part::PARTS], 300 if os.environ.get("HARDENING") == "long" else 40, eval_every=20)


@pytest.mark.slow
def test_the_default_size() -> None:
    check(["clip", "vespo", "reinforce", "gspo"], 12, prompts=16, responses=8, eval_every=10)

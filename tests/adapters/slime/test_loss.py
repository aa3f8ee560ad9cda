"""The custom loss of slime against what its documentation and its own tests say of the calls around it."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from hook_rows import SUFFIXES, hook_rows, poisoned, relative_error, supported, wanted_gradient
from loss_hook_contracts import in_slime, slime_arguments, slime_batch

from vcpo_bench.adapters.slime import HOOK, loss
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method

METHOD = "tis+seq-mean-token-mean(empty=counted)"
SUM_NORM = f"vespo{SUFFIXES[3]}"
Scores = Callable[..., Any]


@pytest.fixture(autouse=True)
def replace_scores(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scores], None]:
    losses, core = ModuleType("slime.backends.megatron_utils.loss"), ModuleType("megatron.core")
    losses.get_rollout_top_p_logprob_kwargs = lambda args, batch: {}  # type: ignore[attr-defined]
    core.mpu = SimpleNamespace(get_context_parallel_world_size=lambda: 1)  # type: ignore[attr-defined]
    for name in ("slime", "slime.backends", "slime.backends.megatron_utils", "megatron"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for module in (losses, core):
        monkeypatch.setitem(sys.modules, module.__name__, module)

    def replace(scores: Scores) -> None:
        losses.get_log_probs_and_entropy = scores  # type: ignore[attr-defined]

    return replace


def test_every_supported_method_has_its_gradient(replace_scores: Callable[[Scores], None]) -> None:
    rows = hook_rows()
    for text in [*supported(HOOK, SUFFIXES[1:2]), SUM_NORM]:
        found = in_slime(loss, poisoned(rows), text, replace_scores)
        assert relative_error(found, wanted_gradient(parse_method(text), rows)) < 1e-12, text


def test_without_an_anchor_the_current_policy_is_the_proximal_one(replace_scores: Callable[[Scores], None]) -> None:
    rows = hook_rows()
    batch = slime_batch(rows, [0, 1]) | {"log_probs": []}
    own = [rows.logp[row, :length] for row, length in zip([0, 1], batch["response_lengths"], strict=True)]
    replace_scores(lambda *_, **__: (None, {"log_probs": own}))
    arguments = slime_arguments("decoupled+seq-mean-token-mean(empty=counted)")
    value, _ = loss(arguments, batch, torch.zeros(1, 1, 1), torch.sum)
    assert torch.isfinite(value)


@pytest.mark.parametrize(
    ("arguments", "batch", "reason"),
    [
        ({"vcpo_bench_method": None}, {}, "no method; put `vcpo_bench_method"),
        ({"vcpo_bench_method": "tis"}, {}, "tis in slime: .*empty=counted"),
        ({"calculate_per_token_loss": True}, {}, "an empty sample counts as one token"),
        ({}, {"rollout_log_probs": None}, "log-probabilities of the sampling engine are missing"),
        ({}, {"rollout_mask_sums": torch.tensor([99.0, 99.0])}, "a rollout has several samples"),
    ],
)
def test_refused(
    replace_scores: Callable[[Scores], None], arguments: dict[str, Any], batch: dict[str, Any], reason: str
) -> None:
    replace_scores(lambda *_, **__: pytest.fail("scored before it was checked"))
    with pytest.raises(UsageError, match=reason):
        loss(
            slime_arguments(**({"method": METHOD} | _renamed(arguments))),
            slime_batch(hook_rows(), [0, 1]) | batch,
            torch.zeros(1, 1, 1),
            torch.sum,
        )


def _renamed(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"method" if name == "vcpo_bench_method" else name: value for name, value in arguments.items()}


def test_context_parallelism_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    two = SimpleNamespace(get_context_parallel_world_size=lambda: 2)
    monkeypatch.setattr(sys.modules["megatron.core"], "mpu", two)
    sys.modules["slime.backends.megatron_utils.loss"].get_log_probs_and_entropy = None  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="context parallelism splits a row"):
        loss(slime_arguments(METHOD), slime_batch(hook_rows(), [0]), torch.zeros(1, 1, 1), torch.sum)

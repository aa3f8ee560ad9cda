"""Methods registered in the SkyRL that is installed: its registry, its division of advantages, its configuration."""

import sys
import typing
from collections.abc import Iterator
from typing import Any

import pytest
import typing_extensions

pytest.importorskip("skyrl", reason="runs in .ci/integrations loss_paths")
if sys.version_info < (3, 12):  # where pydantic refuses the TypedDict that skyrl.tinker imports
    typing.TypedDict = typing_extensions.TypedDict

from hook_rows import SUFFIXES, hook_rows, poisoned, relative_error, supported, wanted_gradient
from loss_hook_contracts import in_skyrl
from ray import cloudpickle
from skyrl.backends.skyrl_train.utils.ppo_utils import (
    PolicyLossRegistry,
    apply_loss_reduction_to_advantages_minibatch,
)
from skyrl.train.config import AlgorithmConfig
from torch import Tensor

from vcpo_bench.adapters.skyrl import HOOKS, register
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method


@pytest.fixture(autouse=True)
def own_names() -> Iterator[None]:
    before = set(PolicyLossRegistry.list_available())
    yield
    for name in set(PolicyLossRegistry.list_available()) - before:
        PolicyLossRegistry.unregister(name)


def divide(advantages: Tensor, mask: Tensor, config: Any) -> Tensor:
    return apply_loss_reduction_to_advantages_minibatch(  # type: ignore[no-any-return]
        advantages, mask, config.loss_reduction, micro_batch_size=3, max_seq_len=config.max_seq_len
    )


@pytest.mark.parametrize("reduction", HOOKS)
def test_every_supported_method_has_its_gradient(reduction: str) -> None:
    rows, config = hook_rows(), AlgorithmConfig(loss_reduction=reduction, max_seq_len=13)
    expressions = supported(HOOKS[reduction], SUFFIXES[:2])
    assert len(expressions) > 25
    for text in expressions:
        name = register(text)
        assert name in PolicyLossRegistry.list_available()
        found = in_skyrl(PolicyLossRegistry.get(name), poisoned(rows), config, divide)
        assert relative_error(found, wanted_gradient(parse_method(text), rows)) < 1e-12, text


def test_its_own_reductions_and_corrections_are_refused() -> None:
    loss = PolicyLossRegistry.get(register("tis+token-mean"))
    for reduction in ("prompt_mean", "token_mean_legacy"):
        with pytest.raises(UsageError, match="divides by micro-batches or prompts"):
            in_skyrl(loss, hook_rows(), AlgorithmConfig(loss_reduction=reduction), lambda a, *_: a)
    config = AlgorithmConfig()
    config.off_policy_correction.tis_ratio_type = "sequence"
    with pytest.raises(UsageError, match="belongs to the loss that is replaced"):
        in_skyrl(loss, hook_rows(), config, lambda a, *_: a)


def test_the_loss_travels_to_workers_as_skyrl_sends_it() -> None:
    sent = cloudpickle.loads(cloudpickle.dumps(PolicyLossRegistry.get(register("vespo+token-mean"))))
    rows = hook_rows()
    found = in_skyrl(sent, rows, AlgorithmConfig(), divide)
    assert relative_error(found, wanted_gradient(parse_method("vespo+token-mean"), rows)) < 1e-12

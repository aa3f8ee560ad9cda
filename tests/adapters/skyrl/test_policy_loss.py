"""SkyRL's policy loss against what its documentation says of the calls around it."""

import pickle
import sys
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from hook_rows import SUFFIXES, hook_rows, poisoned, relative_error, supported, wanted_gradient
from loss_hook_contracts import in_skyrl, skyrl_config

from vcpo_bench.adapters.skyrl import HOOKS, policy_loss, register
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method


class PolicyLossRegistry:
    """Keeps what is registered."""

    functions: dict[str, Any] = {}  # noqa: RUF012 - as SkyRL's, one per process

    @classmethod
    def register(cls, name: str, function: Any) -> None:
        assert name not in cls.functions
        cls.functions[name] = function

    @classmethod
    def list_available(cls) -> list[str]:
        return list(cls.functions)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> type[PolicyLossRegistry]:
    module = ModuleType("skyrl.backends.skyrl_train.utils.ppo_utils")
    module.PolicyLossRegistry = PolicyLossRegistry  # type: ignore[attr-defined]
    for name in ("skyrl", "skyrl.backends", "skyrl.backends.skyrl_train", "skyrl.backends.skyrl_train.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    PolicyLossRegistry.functions.clear()
    return PolicyLossRegistry


@pytest.mark.parametrize("reduction", HOOKS)
def test_every_supported_method_has_its_gradient(reduction: str) -> None:
    rows, config = hook_rows(), skyrl_config(reduction)
    expressions = supported(HOOKS[reduction], SUFFIXES[:2])
    assert len(expressions) > 25
    if "seq" in reduction:
        expressions += [f"vespo{suffix}" for suffix in SUFFIXES[2:]]
    for text in expressions:
        found = in_skyrl(partial(policy_loss, method=text), poisoned(rows), config)
        assert relative_error(found, wanted_gradient(parse_method(text), rows)) < 1e-12, text


def test_registered_under_the_name_for_the_configuration(registry: type[PolicyLossRegistry]) -> None:
    name = register("tis(cap=3)+token-mean")
    assert name == register("tis(cap=3)+token-mean") == "vcpo_bench:tis(cap=3)+token-mean"
    sent = pickle.loads(pickle.dumps(registry.functions[name]))  # SkyRL sends it to its workers
    rows = hook_rows()
    found = in_skyrl(sent, rows, skyrl_config("token_mean"))
    assert relative_error(found, wanted_gradient(parse_method("tis(cap=3)+token-mean"), rows)) < 1e-12


def test_refused_when_it_is_registered(registry: type[PolicyLossRegistry]) -> None:
    for method, reason in (("gepo+token-mean", "single rows"), ("dro+token-mean", "not proportional")):
        with pytest.raises(UsageError, match=f"in SkyRL: .*{reason}"):
            register(method)
    assert not registry.functions


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (skyrl_config("prompt_mean"), "loss_reduction=prompt_mean divides by micro-batches or prompts"),
        (skyrl_config("sequence_mean"), "divides by the number of rows, from which token-mean cannot be made"),
        (
            skyrl_config("token_mean", tis_ratio_type="token"),
            "off_policy_correction.tis_ratio_type belongs to the loss",
        ),
        (skyrl_config("token_mean", token_mask_is_threshold_low=0.1), "token_mask_is_threshold_low belongs"),
    ],
)
def test_refused_at_the_first_micro_batch(config: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        in_skyrl(partial(policy_loss, method="tis+token-mean"), hook_rows(), config)


def test_missing_log_probabilities_are_said() -> None:
    rows = hook_rows()
    with pytest.raises(UsageError, match=r"sampling_params\.logprobs"):
        policy_loss(
            rows.logp, rows.logp, rows.advantage, skyrl_config("token_mean"), rows.mask.long(), method="tis+token-mean"
        )

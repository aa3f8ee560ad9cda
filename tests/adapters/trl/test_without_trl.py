"""The room without TRL, and what is refused by settings that no machine of the tests has."""

from types import SimpleNamespace
from typing import Any

import pytest

from vcpo_bench.adapters.trl import refusals
from vcpo_bench.adapters.trl.refusals import check
from vcpo_bench.errors import UsageError
from vcpo_bench.methods import parse_method


@pytest.fixture(autouse=True)
def _no_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL's own defaults are where TRL is; what differs from them is refused in tests/integrations/test_trl.py."""
    monkeypatch.setattr(refusals, "defaults", dict)


def trainer(**changes: Any) -> Any:
    """The settings that the checks look at, all harmless."""
    arguments = {
        "n_gpu": 1,
        "fp16": False,
        "gradient_accumulation_steps": 4,
        "steps_per_generation": 4,
        "per_device_train_batch_size": 4,
        "entropy_coef": 0.0,
        "use_adaptive_entropy": False,
    }
    settings: dict[str, Any] = {
        "is_fsdp_enabled": False,
        "is_deepspeed_enabled": False,
        "get_sp_size": lambda: 1,
        "get_cp_size": lambda: 1,
        "get_tp_size": lambda: 1,
        "num_generations": 4,
        "num_iterations": 1,
        "beta": 0.0,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "multi_objective_aggregation": "sum_then_normalize",
        "aux_loss_enabled": False,
        "train_dataset": [0],
        "use_vllm": False,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": None,
        "repetition_penalty": 1.0,
        "_is_vlm": False,
    }
    args = SimpleNamespace(**{name: changes.pop(name, value) for name, value in arguments.items()})
    return SimpleNamespace(args=args, **(settings | changes))


def test_harmless_settings_pass() -> None:
    for method in ("vcpo", "gac", "snis", "reinforce+otb"):
        check(trainer(), parse_method(method), 0)
    check(trainer(is_fsdp_enabled=True), parse_method("vcpo(baseline=group)"), 8)
    check(trainer(is_deepspeed_enabled=True), parse_method("vespo+otb"), 8)


@pytest.mark.parametrize(
    ("method", "changes", "reason"),
    [
        ("vcpo", {"is_fsdp_enabled": True}, r"need whole weights, and these are sharded: .*\+otb.*baseline=group"),
        ("vespo+opob", {"is_deepspeed_enabled": True}, "need whole weights"),
        ("vcpo(baseline=group)", {"is_deepspeed_enabled": True}, "DeepSpeed steps inside its own engine"),
        ("gac", {"is_fsdp_enabled": True}, "compares whole gradients"),
        ("gac", {"fp16": True}, "those of float16 training are scaled"),
        ("tis", {"n_gpu": 2}, "start with torchrun"),
        ("tis", {"get_tp_size": lambda: 2}, "give several ranks the same rows"),
        ("tis", {"aux_loss_enabled": True}, "mixture of experts"),
        ("vcpo", {"_is_vlm": True}, "exact for text models only"),
    ],
)
def test_refused(method: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        check(trainer(**changes), parse_method(method), 0)


def test_data_that_cannot_be_read_ahead_are_refused_with_a_lag() -> None:
    endless = trainer(train_dataset=iter([0]))
    check(endless, parse_method("tis"), 0)
    with pytest.raises(UsageError, match="use a data set with an index"):
        check(endless, parse_method("tis"), 1)

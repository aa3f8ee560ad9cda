"""The plugin with stand-ins for verl and for the import hook: what it completes, and that failures are printed."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from vcpo_bench.adapters.verl import plugin
from vcpo_bench.errors import UsageError


def hook(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was asked for, by the module it waits for."""
    waiting: dict[str, Any] = {}
    wrapt: Any = ModuleType("wrapt")
    wrapt.when_imported = lambda name: lambda action: waiting.setdefault(name, action)
    monkeypatch.setitem(sys.modules, "wrapt", wrapt)
    return waiting


def test_it_waits_for_verls_modules_and_completes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = hook(monkeypatch)
    plugin.load()
    assert waiting.keys() == plugin.COMPLETIONS.keys()
    losses: Any = SimpleNamespace(POLICY_LOSS_REGISTRY={"vanilla": len}, agg_loss=max)
    waiting["verl.trainer.ppo.core_algos"](losses)
    known = losses.POLICY_LOSS_REGISTRY
    waiting["verl.trainer.ppo.core_algos"](losses)
    assert losses.POLICY_LOSS_REGISTRY is known
    assert {"vanilla", "vcpo_bench:tis"} <= {name for name in ("vanilla", "vcpo_bench:tis") if name in known}


def settings(loss_mode: str, mode: str = "sync") -> Any:
    actor = SimpleNamespace(policy_loss=SimpleNamespace(loss_mode=loss_mode))
    rollout = SimpleNamespace(calculate_log_probs=True, top_p=1, top_k=-1)
    return SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(actor=actor, rollout=rollout),
        trainer=SimpleNamespace(use_v1=True, v1=SimpleNamespace(trainer_mode=mode, sampler={})),
        algorithm={},
    )


def test_the_check_of_the_configuration_refuses_before_verls_own(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, seen = hook(monkeypatch), []
    plugin.load()
    module: Any = SimpleNamespace(validate_config=lambda config, flag: seen.append(flag))
    waiting["verl.utils.config"](module)
    module.validate_config(settings("vanilla"), flag=1)
    with pytest.raises(UsageError, match="staleness is invisible"):
        module.validate_config(settings("vcpo_bench:tis"), flag=2)
    with pytest.raises(UsageError, match="needs a method"):
        module.validate_config(settings("vanilla", "vcpo_bench"), flag=3)
    assert seen == [1]


def test_failures_are_printed_and_verl_is_imported_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waiting = hook(monkeypatch)
    monkeypatch.setattr(plugin, "_failures", [])
    plugin.load()
    losses: Any = SimpleNamespace(POLICY_LOSS_REGISTRY={"vanilla": len}, agg_loss=max)
    waiting["verl.trainer.ppo.core_algos"](losses)
    assert "vcpo_bench:tis" in losses.POLICY_LOSS_REGISTRY
    waiting["verl.utils.config"](SimpleNamespace())  # a later verl without what is completed
    assert "vcpo_bench: not available in verl, AttributeError" in capsys.readouterr().err
    assert losses.POLICY_LOSS_REGISTRY["vanilla"] is len
    assert "vcpo_bench:tis" not in losses.POLICY_LOSS_REGISTRY  # nobody would check its configuration
    with pytest.raises(KeyError):
        losses.POLICY_LOSS_REGISTRY["vcpo_bench:tis"]
    monkeypatch.setitem(sys.modules, "wrapt", None)
    plugin.load()
    assert "pip install '.[verl]' in a checkout" in capsys.readouterr().err

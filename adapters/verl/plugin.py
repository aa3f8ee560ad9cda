"""What verl loads through its entry point group `verl.plugins`, in every process that imports it.

Nothing of verl is imported here. Three of its modules are completed right after verl has imported them: the registry of
policy losses, the registry of trainers, and the check of the configuration, which runs before anything is started.
Where one cannot be completed, a line says so, no loss of ours is known, and runs that name none go on.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any


def load() -> None:
    """Complete verl's modules when they are imported; a failure is printed, since verl hides it."""
    try:
        import wrapt

        for module, complete in COMPLETIONS.items():
            wrapt.when_imported(module)(_said(complete))
    except Exception as error:
        _say(error)


def _complete_losses(core_algos: Any) -> None:
    from vcpo_bench.adapters.verl.policy_loss import install

    install(core_algos, lambda: not _failures)


def _complete_trainers(trainers: Any) -> None:
    from vcpo_bench.adapters.verl.build import register_trainers

    register_trainers(sys.modules[f"{trainers.__name__}.trainer_base"])


def _complete_check(module: Any) -> None:
    from vcpo_bench.adapters.verl.refusals import check

    validate = module.validate_config

    @functools.wraps(validate)
    def validate_config(config: Any, *args: Any, **kwargs: Any) -> Any:
        check(config)
        return validate(config, *args, **kwargs)

    module.validate_config = validate_config


COMPLETIONS: dict[str, Callable[[Any], None]] = {
    "verl.trainer.ppo.core_algos": _complete_losses,
    "verl.trainer.ppo.v1": _complete_trainers,
    "verl.utils.config": _complete_check,
}
"""Modules of verl, and what completes each."""
_failures: list[Exception] = []


def _said(complete: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(complete)
    def completed(module: Any) -> None:
        try:
            complete(module)
        except Exception as error:
            _say(error)

    return completed


def _say(error: Exception) -> None:
    from vcpo_bench.errors import how_to_install

    _failures.append(error)
    print(
        f"vcpo_bench: not available in verl, {type(error).__name__}: {error} ({how_to_install('verl')})",
        file=sys.stderr,
        flush=True,
    )


if "verl" in sys.modules:  # verl loads entry points by importing them
    load()

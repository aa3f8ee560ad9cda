"""Makes the trainer classes that verl finds under our modes."""

from __future__ import annotations

from typing import Any

from vcpo_bench.adapters.verl.monitored import MonitoredTrainer
from vcpo_bench.adapters.verl.names import METHOD_MODES, MONITOR_MODES
from vcpo_bench.adapters.verl.trainer import MethodPPOTrainer


def register_trainers(base: Any) -> None:
    """Register one class per mode, once.

    Args:
        base: The module `verl.trainer.ppo.v1.trainer_base`, with verl's own trainers registered.
    """
    for ours, modes in ((MethodPPOTrainer, METHOD_MODES), (MonitoredTrainer, MONITOR_MODES)):
        for name, mode in modes.items():
            if name not in base.TRAINER_REGISTRY:
                kind = type(name, (ours, base.get_trainer_cls(mode)), {"base_mode": mode, "__module__": __name__})
                base.register_trainer(name)(kind)

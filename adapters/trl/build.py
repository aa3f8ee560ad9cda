"""Makes a trainer class that carries a method."""

from __future__ import annotations

from vcpo_bench.adapters.trl.lag import read_lag
from vcpo_bench.adapters.trl.trainer import MethodGRPOTrainer
from vcpo_bench.errors import UsageError, how_to_install
from vcpo_bench.methods import Method, parse_method

EXTRA = f"TRL is not installed: {how_to_install('trl')}"


def build_trainer_class(trainer_class: type, method: str | Method, lag: str) -> type:
    """See `adapters.trl.with_method`.

    Raises:
        UsageError: The expression or the lag is wrong, TRL is not installed, or the class is another trainer.
    """
    try:
        from trl import GRPOTrainer
    except ImportError:
        raise UsageError(EXTRA) from None
    parsed = parse_method(method) if isinstance(method, str) else method
    names = [base.__name__ for base in trainer_class.__mro__]
    if "AsyncGRPOTrainer" in names:
        raise UsageError(
            "AsyncGRPOTrainer hands its loss packed rows without rewards and without the other responses to a prompt, "
            f"and {parsed.canonical} needs {parsed.parts.baseline.name} advantages of whole prompts: use GRPOTrainer, "
            "with lag='fifo(k)' for off-policy data"
        )
    if not issubclass(trainer_class, GRPOTrainer):
        raise UsageError(f"with_method takes trl.GRPOTrainer or a subclass of it, not {trainer_class.__name__}")
    if issubclass(trainer_class, MethodGRPOTrainer):
        raise UsageError(f"{trainer_class.__name__} carries a method already: start from trl.GRPOTrainer")
    inside = {"method": parsed, "lag": read_lag(lag), "__module__": __name__}
    return type(f"{trainer_class.__name__}WithMethod", (MethodGRPOTrainer, trainer_class), inside)

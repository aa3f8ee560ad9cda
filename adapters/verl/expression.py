"""How a configuration of verl names a method: in `policy_loss.loss_mode`, behind a prefix."""

from __future__ import annotations

from vcpo_bench.errors import UsageError
from vcpo_bench.methods import Method, parse_method

PREFIX = "vcpo_bench:"


def names_method(loss_mode: object) -> bool:
    """Whether a loss mode is one of ours."""
    return isinstance(loss_mode, str) and loss_mode.startswith(PREFIX)


def read_loss_mode(loss_mode: str) -> Method:
    """The method that a loss mode names.

    Raises:
        UsageError: The expression is wrong; the message says where.
    """
    try:
        return parse_method(loss_mode.removeprefix(PREFIX))
    except UsageError as error:
        raise UsageError(f'policy_loss.loss_mode="{loss_mode}": {error}') from None

"""Whether a server has loaded a state: log-probabilities of a few tokens tell trained weights from untrained ones.

SkyRL's JAX backend does not refuse a state whose file is gone. It says that it has loaded it, and keeps the untrained
adapters that the load was to replace; a cell would go on from its start model as if nothing had happened.
"""

from __future__ import annotations

from torch import Tensor

from vcpo_bench.bench.learners.tinker_api.rows import Row

WITNESS = Row([1], [2, 3, 4, 5, 6, 7, 8])
"""Tokens that every vocabulary has; what they mean does not matter."""
_NEAR = 0.1


def nothing_loaded(loaded: Tensor, saved: Tensor, untrained: Tensor) -> bool:
    """Whether weights that are said to be loaded are untrained ones.

    Rounding may differ between saving and loading, so nothing has to be equal: it is asked which of two models the
    weights are. Rounding alone hardly brings seven numbers within a tenth of its own size.

    Args:
        loaded: [T] log-probabilities of the witness after loading.
        saved: [T] the same when the state was saved.
        untrained: [T] the same before loading.
    """
    return bool((loaded - untrained).abs().max() < _NEAR * (saved - untrained).abs().max())

"""The expressions whose gradients are compared inside trainers: every method and part, and what only shows combined."""

from collections.abc import Callable

from vcpo_bench.adapters.locality import Locality, locality_of
from vcpo_bench.methods import method_names, parse_method, part_names

COMBINATIONS = (
    "clip+entropy", "clip+ess(base=measured)", "clip+psis", "decoupled(proximal=loglinear)", "gepo(scope=batch)",
    "reinforce+opob(scope=batch)", "tis+seq-mean-token-sum-norm", "vcpo(baseline=group)", "vcpo+otb", "vcpo:paper",
    "vespo+opob", "vespo+otb(weights=on)",
)  # fmt: skip


def supported(refused: Callable[[Locality], bool]) -> list[str]:
    """Every expression that a trainer takes; those with a reference policy need a configuration of their own.

    Args:
        refused: What it has to refuse.
    """
    parts = [f"reinforce+{name}" for name in part_names() if name not in method_names()]
    known = {text: locality_of(parse_method(text)) for text in [*method_names(), *parts, *COMBINATIONS]}
    return [text for text, it in known.items() if not refused(it) and "reference_logp" not in it.needs]

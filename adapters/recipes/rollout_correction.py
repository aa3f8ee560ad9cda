"""verl's own weights, masks and losses (`rollout_correction`), where they are a method.

In bypass mode verl's ratio is to the rollout, so that a lag is seen. Its V1 trainer hands the loss what stands under
`policy_loss.rollout_correction`, and not the settings of the same names under `algorithm`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vcpo_bench.methods import Method, parse_method
from vcpo_bench.methods.clip import Clip
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.interfaces import Mask
from vcpo_bench.methods.dual_clip import DualClip
from vcpo_bench.methods.parts.band import Band
from vcpo_bench.methods.parts.divergence import Divergence
from vcpo_bench.methods.tis import Tis

ACTOR = "actor_rollout_ref.actor"
BYPASS = ("actor_rollout_ref.rollout.calculate_log_probs=True", "algorithm.rollout_correction.bypass_mode=True")
WEIGHTS = ("tis", "mis", "token-tis", "rollout-is", "icepop")
AVERAGES = {
    "token-mean": "token-mean",
    "seq-mean-token-sum": "seq-mean-token-sum(empty=counted)",
    "seq-mean-token-mean": "seq-mean-token-mean(empty=counted)",
}
"""verl's names, and what they are here."""
NO_CEILING = 1e9
"""A ratio that verl's clamp of log ratios, 20, never reaches."""


def in_bypass_mode(method: Method) -> tuple[tuple[str, ...], str] | None:
    """The settings, and the expression of what they do; None: verl has none for this loss."""
    slots = {part.slot for part in method.extras} - {"baseline"}
    average = next((part.name for part in method.extras if part.slot == "aggregation"), "token-mean")
    masked = "mask" in slots
    if slots - {"method", "mask", "aggregation"} or average not in AVERAGES:
        return None
    if masked and average == "seq-mean-token-mean":  # verl's rows lose length there, and rejected rows still count
        return None
    loss, masks = _loss(method), [_mask(part) for part in method.parts.masks]
    if loss is None or None in masks:
        return None
    plain, correction = loss
    correction |= _rejections(masks)
    only_clips = correction == {"loss_type": "ppo_clip"}
    mode = "vanilla" if only_clips else "bypass_mode"
    added = {} if only_clips else {f"+{ACTOR}.policy_loss.rollout_correction.{k}": v for k, v in correction.items()}
    settings = {f"{ACTOR}.policy_loss.loss_mode": mode, **plain, **added, f"{ACTOR}.loss_agg_mode": average}
    kept = tuple(_counted(part) for part in method.extras if part.slot in ("method", "mask"))
    exact = parse_method(f"{replace(method, extras=kept).canonical}+{AVERAGES[average]}").canonical
    return (*BYPASS, *(_line(name, value) for name, value in settings.items())), exact


def decoupled(method: Method) -> tuple[Method, tuple[str, ...], tuple[MethodComponent, ...]]:
    """What is left without weights and masks of the proximal policy over the rollout's, their settings, and they.

    Outside bypass mode verl computes them once per batch, and multiplies any of its losses with them. Nothing is taken
    away where verl has no such setting.
    """
    ours = tuple(part for part in method.extras if getattr(part, "of", "") == "proximal")
    masks = [_mask(replace(part, of="current")) for part in ours if isinstance(part, (Band, Divergence))]
    weights = [_weight(replace(part, of="current")) for part in ours if isinstance(part, Tis)]
    anchored = getattr(method, "anchor", "") == "proximal"
    known = len(weights) < 2 and len(masks) + len(weights) == len(ours) and None not in (*masks, *weights)
    if not (ours and anchored and known):
        return method, (), ()
    settings = {**(weights[0] or {} if weights else {}), **_rejections(masks)}
    rest = replace(method, extras=tuple(part for part in method.extras if part not in ours))
    lines = (_line(f"algorithm.rollout_correction.{name}", value) for name, value in settings.items())
    return rest, (BYPASS[0], *lines), tuple(_counted(part) for part in ours)


def _counted(part: MethodComponent) -> MethodComponent:
    """With rejected tokens in the denominators, as verl has them."""
    return replace(part, rejected="counted") if isinstance(part, Mask) else part


def _rejections(masks: Sequence[tuple[str, str] | None]) -> dict[str, str]:
    found = [mask for mask in masks if mask is not None]
    if not found:
        return {}
    kinds, bounds = zip(*found, strict=True)
    return {"rollout_rs": ",".join(kinds), "rollout_rs_threshold": ",".join(bounds)}


def _line(name: str, value: str) -> str:
    """As a shell takes it; quoted twice where Hydra would read a list, or a number with an underscore."""
    return f"'{name}=\"{value}\"'" if "," in value or (value[:1].isdigit() and "_" in value) else f"{name}={value}"


def _loss(method: Method) -> tuple[dict[str, str], dict[str, str]] | None:
    """Settings of the actor, and of the correction."""
    weights = [part for part in (method, *method.parts.weights) if isinstance(part, Tis)]
    others = [part for part in method.extras if part.slot == "method" and not isinstance(part, Tis)]
    if others or len(weights) > 1:
        return None
    if method.name == "reinforce" or isinstance(method, Tis):
        weight = _weight(weights[0]) if weights else {}
        return None if weight is None else ({}, {"loss_type": "reinforce", **weight})
    if (
        not isinstance(method, Clip)
        or type(method) not in (Clip, DualClip)
        or weights
        or method.anchor != "behavior"
        or method.clamp != 20
    ):
        return None
    ceiling = method.cap if isinstance(method, DualClip) else NO_CEILING
    bounds = {"low": method.low, "high": method.high, "c": ceiling}
    return {f"{ACTOR}.clip_ratio_{name}": str(value) for name, value in bounds.items()}, {"loss_type": "ppo_clip"}


def _weight(weight: Tis) -> dict[str, str] | None:
    """Of the current policy over the rollout's; verl normalizes by micro-batch, which is another thing."""
    behind = (weight.anchor, weight.of, weight.clamp, weight.normalize) != ("behavior", "current", 20, "off")
    zeroes = weight.name not in ("tis", "token-tis")
    if weight.name not in WEIGHTS or behind or weight.level not in ("token", "sequence"):
        return None
    if (weight.low > 0) != zeroes or not 0 < weight.cap < float("inf"):
        return None
    bound = f"{float(weight.low)}_{float(weight.cap)}" if zeroes else str(float(weight.cap))
    return {"rollout_is": weight.level, "rollout_is_threshold": bound}


def _mask(mask: object) -> tuple[str, str] | None:
    """Name and threshold of verl's rejection."""
    if isinstance(mask, Band) and (mask.anchor, mask.of, mask.clamp) == ("behavior", "current", 20):
        kind = {"token": "token_k1", "sequence": "seq_sum_k1", "geometric": "seq_mean_k1"}.get(mask.level)
        bounded = mask.low > 0 and mask.high < float("inf")
        return (kind, f"{1 / mask.high!r}_{1 / mask.low!r}") if kind and bounded else None  # of behavior over current
    if isinstance(mask, Divergence) and (mask.anchor, mask.of, mask.clamp, mask.inverse) == (
        "behavior",
        "current",
        20,
        "off",
    ):
        level = {"token": "token", "mean": "seq_mean", "sum": "seq_sum", "max": "seq_max"}[mask.reduce]
        if mask.kind in ("k2", "k3") and mask.low == -float("inf") and 0 < mask.high < float("inf"):
            return f"{level}_{mask.kind}", repr(float(mask.high))
    return None

"""The base class of every method: assembles its parts into the coefficients of one update."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from vcpo_bench.methods.core.batch import BATCH_AXES, Batch
from vcpo_bench.methods.core.borrowed_step import BorrowedStep
from vcpo_bench.methods.core.component import MethodComponent
from vcpo_bench.methods.core.errors import MethodError, MissingEvidence
from vcpo_bench.methods.core.ess import ess_ratio, ess_ratio_of_logs
from vcpo_bench.methods.core.interfaces import Admission, Aggregation, Baseline, Mask, Part, Regularizer, Step
from vcpo_bench.methods.core.masking import as_number
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.update import Update
from vcpo_bench.methods.core.view import Evidence
from vcpo_bench.methods.parts.constant import Constant
from vcpo_bench.methods.parts.gac import Gac
from vcpo_bench.methods.parts.grpo import Grpo
from vcpo_bench.methods.parts.seq_mean_token_mean import SeqMeanTokenMean
from vcpo_bench.naming.parameters import choice, number


@dataclass(frozen=True, kw_only=True)
class Method(MethodComponent):
    """A stabilizer: a map from a `Batch` to an `Update`.

    A subclass is a frozen dataclass whose fields are its parameters; it gives `terms` and, where it has
    parts of its own, overrides `own_*`. Parts given with `+` come as `extras`: one of a single-valued slot
    replaces the method's own, masks, regularizers, weights and admissions are added. Their order does not matter:
    they are kept in alphabetical order, without those the method has anyway.

    `nonfinite` says what happens to a token in play whose log-probability is not a number: `raise` an error
    (default), `drop` the token (torchtitan), let its log-ratios be 0, hence its weight `one` (AReaL), or give it
    the coefficient `zero` while it still counts in denominators (NeMo-RL).

    Class attributes:
        paper_parts: Parts, as an expression, that `NAME:paper` adds: the paper's own advantage and aggregation.
    """

    slot: ClassVar[str] = "method"
    paper_parts: ClassVar[str] = ""
    extras: tuple[MethodComponent, ...] = field(default=())
    nonfinite: str = choice("raise", "drop", "one", "zero")

    # -- what a subclass may define ----------------------------------------------------------------------------------

    def terms(self, ev: Evidence) -> Terms:
        """The surrogate: u, k and what was clipped."""
        raise NotImplementedError(f"{type(self).__name__} must define terms()")

    def own_baseline(self) -> Baseline:
        """The baseline used unless one is added."""
        return Grpo()

    def own_aggregation(self) -> Aggregation:
        """The aggregation used unless one is added."""
        return SeqMeanTokenMean()

    def own_step(self) -> Step:
        """The step rule used unless one is added."""
        return Constant()

    def own_admissions(self) -> tuple[Admission, ...]:
        """Admissions of the method itself."""
        return ()

    def own_masks(self) -> tuple[Mask, ...]:
        """Masks of the method itself."""
        return ()

    def own_regularizers(self) -> tuple[Regularizer, ...]:
        """Regularizers of the method itself."""
        return ()

    def own_needs(self) -> frozenset[str]:
        """Optional fields the surrogate itself reads."""
        return frozenset()

    def own_anchors(self) -> dict[str, str]:
        """What the surrogate's own ratios are relative to."""
        return {}

    # -- parts -------------------------------------------------------------------------------------------------------

    def __post_init__(self) -> None:
        super().__post_init__()
        seen: dict[str, str] = {}
        for part in self.extras:
            if part.slot in ("baseline", "aggregation", "step") and part.slot in seen:
                raise MethodError(
                    f"{part.name} and {seen[part.slot]} both set the {part.slot} of {self.name}; keep one"
                )
            seen[part.slot] = part.name
            if not isinstance(part, (Part, WeightMethod)):
                raise MethodError(f"{part.name} cannot be added with +: it is a method of its own, not a part")

        own = {self.own_baseline(), self.own_aggregation(), self.own_step()}
        added = sorted((part for part in self.extras if part not in own), key=lambda part: part.text())
        object.__setattr__(self, "extras", tuple(added))

    def _added(self, kind: type[Any]) -> tuple[Any, ...]:
        return tuple(part for part in self.extras if isinstance(part, kind))

    @cached_property
    def admissions(self) -> tuple[Admission, ...]:
        """Admissions in force: those of single rows before those of groups."""
        return tuple(sorted((*self.own_admissions(), *self._added(Admission)), key=lambda part: part.whole_groups))

    @cached_property
    def baseline_part(self) -> Baseline:
        """The baseline in force."""
        return next(iter(self._added(Baseline)), None) or self.own_baseline()

    @cached_property
    def weights(self) -> tuple["WeightMethod", ...]:
        """Weights added with `+`; their product multiplies the advantage."""
        return self._added(WeightMethod)

    @cached_property
    def masks(self) -> tuple[Mask, ...]:
        """Masks in force."""
        return (*self.own_masks(), *self._added(Mask))

    @cached_property
    def regularizers(self) -> tuple[Regularizer, ...]:
        """Regularizers in force."""
        return (*self.own_regularizers(), *self._added(Regularizer))

    @cached_property
    def aggregation_part(self) -> Aggregation:
        """The aggregation in force."""
        return next(iter(self._added(Aggregation)), None) or self.own_aggregation()

    @cached_property
    def step_part(self) -> Step:
        """The step rule in force."""
        return next(iter(self._added(Step)), None) or self.own_step()

    @cached_property
    def _parts(self) -> tuple[MethodComponent, ...]:
        single = (self.baseline_part, self.aggregation_part, self.step_part)
        return (*self.admissions, *single, *self.weights, *self.masks, *self.regularizers)

    @property
    def version(self) -> int:
        """Its own revision, plus every later revision of a part in force."""
        return self.revision + sum(part.revision - 1 for part in self._parts)

    @property
    def plugins(self) -> str:
        """Digests of the plug-in files that it and its parts come from, joined with `+`; empty for what ships."""
        return "+".join(sorted({part.source for part in (self, *self._parts)} - {""}))

    @property
    def needs(self) -> frozenset[str]:
        """Optional batch fields the method and its parts read; `state` when one keeps state."""
        return self.own_needs().union(*(part.needs for part in self._parts))

    @property
    def anchors(self) -> dict[str, str]:
        """What each ratio is relative to: `{"ratio": "behavior", "ess weights": "behavior"}`."""
        return dict(item for each in (self.own_anchors(), *(p.anchors for p in self._parts)) for item in each.items())

    def text(self) -> str:
        """Canonical spelling, parts included: expressions with the same meaning have the same."""
        return "+".join([super().text(), *(part.text() for part in self.extras)])

    @cached_property
    def canonical(self) -> str:
        """The same, worked out once."""
        return self.text()

    @property
    def needs_series(self) -> str | None:
        """Expression of the cell whose step scales this method borrows, or None."""
        return self.step_part.needs_series if isinstance(self.step_part, BorrowedStep) else None

    def with_series(self, values: Sequence[float], rng_seed: int) -> "Method":
        """This method carrying the step scales of the cell it borrows from.

        Args:
            values: One scale per update of that cell, in order.
            rng_seed: Seed of their order, for `lr-shuffled`.

        Raises:
            MethodError: When it borrows none.
        """
        step = self.step_part
        if not isinstance(step, BorrowedStep):
            raise MethodError(f"{self.canonical} borrows no step scales")
        others = tuple(part for part in self.extras if part.slot != "step")
        return replace(self, extras=(*others, step.with_series(values, rng_seed)))

    @property
    def combine(self) -> Callable[[tuple[float, float, float]], tuple[float, float]] | None:
        """For methods that act on the gradient: (<g,g>, <g,p>, <p,p>) to (a, b), g <- a g + b p; else None."""
        return self.step_part.combine if isinstance(self.step_part, Gac) else None

    # -- one update --------------------------------------------------------------------------------------------------

    def __call__(self, batch: Batch) -> Update:
        """The coefficients of one optimizer step; nothing in the batch is changed.

        Raises:
            MissingEvidence: When the batch lacks a field in `needs`.
            NonFiniteEvidence: When a token in play or a valid row has a value that is not a number.
        """
        with torch.no_grad():
            ev = self._evidence(batch)
            update = self._update(ev)
            ev.release()
            return update

    def _evidence(self, batch: Batch) -> Evidence:
        missing = sorted(name for name in self.needs - {"state"} if getattr(batch, name) is None)
        if missing:
            raise MissingEvidence(f"{self.canonical} needs {', '.join(missing)}; the batch does not carry it")
        ev = Evidence(batch, self.nonfinite)
        for admission in self.admissions:
            ev.admit(admission.admit(ev))
        ev.row_log_ratio()
        ev.advantage = self._advantage(ev)
        for penalty in (part.penalty(ev) for part in self.regularizers):
            if penalty is not None:
                ev.advantage = ev.advantage - penalty
        return ev

    def _advantage(self, ev: Evidence) -> Tensor:
        if ev.batch.advantage is not None:
            return ev.token_field("advantage")
        advantage = self.baseline_part.advantage(ev).to(ev.batch.logp.dtype)
        return advantage if advantage.dim() == ev.mask.dim() else advantage.unsqueeze(-1)

    def _update(self, ev: Evidence) -> Update:
        tokens = ev.tokens
        scale = self.step_part.scale(ev)
        ess = ess_ratio_of_logs(ev.row_log_ratio(), ev.rows)
        for part in self.weights:
            extra = part.weight(ev)
            ev.applied = extra if ev.applied is None else ev.applied * extra
        keep, factor, rejected = self._mask(ev, tokens)
        ev.signal = ev.advantage if ev.applied is None else ev.advantage * ev.applied
        terms = self.terms(ev)
        coefficients, used = self._assemble(ev, terms, keep, factor)
        metrics = {
            "share_clipped": _share(ev, terms, tokens),
            "share_masked": rejected,
            "ess_ratio": ess,
            "ess_ratio_used": used,
        }
        return Update(
            coefficients=coefficients,
            step_scale=scale,
            entropy_coefficients=self._entropy(ev, factor),
            state=ev.state,
            metrics=metrics,
        )

    def _mask(self, ev: Evidence, tokens: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Reject tokens; returns what to multiply the score with, N `[..., P, G, 1]`, and the share rejected."""
        if not self.masks:
            return None if ev.spoiled is None else ~ev.spoiled, self._factor(ev), torch.zeros_like(tokens)
        keeps = [(mask, mask.keep(ev)) for mask in self.masks]
        both = ev.mask
        counted = None if ev.spoiled is None else ~ev.spoiled
        for mask, keep in keeps:
            both = both & keep
            if mask.rejected == "counted":
                counted = keep if counted is None else counted & keep
        kept = both.sum(BATCH_AXES)
        for mask, keep in keeps:
            if mask.rejected == "dropped":
                ev.drop(keep)
        factor = self._factor(ev)
        for mask, keep in keeps:
            if mask.rejected == "apart":
                ev.drop(keep)
        return counted, factor, 1 - kept / tokens.clamp(min=1)

    def _factor(self, ev: Evidence) -> Tensor:
        return self.aggregation_part.factor(ev).unsqueeze(-1)

    def _assemble(self, ev: Evidence, terms: Terms, keep: Tensor | None, factor: Tensor) -> tuple[Tensor, Tensor]:
        """C = N (A W u keep + k), zero at masked tokens, and the effective sample size of W u keep."""
        applied, signal = (None, ev.advantage) if terms.absorbs else (ev.applied, ev.signal)
        weight = terms.weight if terms.weight is not None else applied
        used = torch.full_like(ev.tokens, torch.nan)
        score = terms.score
        if weight is not None:
            if terms.kept is None or keep is not None:
                weight = _masked(ev, weight, keep)
            used = _used(ev, weight, applied if terms.weight is not None else None)
        if score is not None:
            total = _masked(ev, score, keep) * factor
        elif terms.weight is not None and weight is not None:
            total = weight * (signal * factor)
        else:
            total = _masked(ev, signal * factor, keep) + 0.0
        own = terms.addend
        if own is not None and applied is not None:
            own = own * applied
        for addend in (own, *(part.addend(ev) for part in self.regularizers)):
            if addend is not None:
                total = total + _masked(ev, addend, None) * factor
        return total, used

    def _entropy(self, ev: Evidence, factor: Tensor) -> Tensor | None:
        bonuses = [value for part in self.regularizers if (value := part.entropy(ev)) is not None]
        if not bonuses:
            return None
        return torch.where(ev.mask, sum(bonuses[1:], bonuses[0]) * factor, 0.0)


def _masked(ev: Evidence, value: Tensor, keep: Tensor | None) -> Tensor:
    """`[..., P, G, T]` in a buffer: the value where a token is in play and kept, exactly 0 elsewhere."""
    return ev.gate(value, keep)


def _share(ev: Evidence, terms: Terms, tokens: Tensor) -> Tensor:
    """Leading shape: share of the tokens in play that were clipped."""
    clipped = terms.clipped
    if terms.kept is not None:
        return (ev.tokens - terms.kept.sum(BATCH_AXES)) / tokens.clamp(min=1)
    if clipped is None:
        return torch.zeros_like(tokens)
    if clipped.shape[-1] == 1:
        count = (clipped.squeeze(-1) * ev.lengths).sum((-2, -1))
    else:
        count = (as_number(clipped, tokens.dtype) * ev.live).sum(BATCH_AXES)
    return count / tokens.clamp(min=1)


def _used(ev: Evidence, weight: Tensor, extra: Tensor | None) -> Tensor:
    """Leading shape: effective sample size of the row means of the applied weights."""
    total = weight if extra is None else weight * extra
    return ess_ratio(total.sum(-1) / ev.lengths.clamp(min=1), ev.rows)


@dataclass(frozen=True, kw_only=True)
class RatioMethod(Method):
    """A method with an importance ratio current/anchor whose logarithm is clamped."""

    anchor: str = choice("behavior", "proximal")
    clamp: float = number(20.0, minimum=0)

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, when it is the anchor."""
        return frozenset({"proximal_logp"}) if self.anchor == "proximal" else frozenset()

    def own_anchors(self) -> dict[str, str]:
        """The ratio's denominator."""
        return {"ratio": self.anchor}


@dataclass(frozen=True, kw_only=True)
class WeightMethod(RatioMethod):
    """A detached weight u: c = A u. It can also be added to another method with `+`, and multiplies there.

    `of=proximal` makes it proximal/behavior, the engine and staleness ratio of decoupled methods.
    """

    of: str = choice("current", "proximal")

    def weight(self, ev: Evidence) -> Tensor:
        """`[..., P, G, 1|T]` u >= 0."""
        raise NotImplementedError(f"{type(self).__name__} must define weight()")

    def terms(self, ev: Evidence) -> Terms:
        """C = A u."""
        return Terms(weight=self.weight(ev))

    def own_needs(self) -> frozenset[str]:
        """The proximal policy, when it is in the ratio."""
        return frozenset({"proximal_logp"}) if "proximal" in (self.anchor, self.of) else frozenset()

    def own_anchors(self) -> dict[str, str]:
        """The ratio, numerator first when it is not the current policy."""
        return {f"{self.name} weight": self.anchor if self.of == "current" else f"{self.of}/{self.anchor}"}

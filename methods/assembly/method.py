"""The base class of every method: runs its parts in order and assembles the coefficients of one update."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.assembly.coefficients import assemble
from vcpo_bench.methods.assembly.composite import Composite
from vcpo_bench.methods.assembly.returned import (
    ROWS,
    ROWS_KEPT,
    ROWS_OR_TOKENS,
    SCALE,
    TOKENS,
    TOKENS_KEPT,
    VOCABULARY,
    checked,
    checked_if_any,
    checked_state,
    checked_terms,
)
from vcpo_bench.methods.assembly.runs import run_by_run
from vcpo_bench.methods.core.batch import BATCH_AXES, LARGEST_REWARD, Batch
from vcpo_bench.methods.core.checks import bounded
from vcpo_bench.methods.core.errors import missing_evidence
from vcpo_bench.methods.core.ess import ess_ratio_of_logs
from vcpo_bench.methods.core.terms import Terms
from vcpo_bench.methods.core.update import Update
from vcpo_bench.methods.core.view import EvidenceView
from vcpo_bench.naming.parameters import choice


@dataclass(frozen=True, kw_only=True)
class Method(Composite):
    """A stabilizer: a map from a `Batch` to an `Update`.

    A subclass is a frozen dataclass whose fields are its parameters; it defines `terms` and, where it has parts of its
    own, `defaults`.

    `nonfinite` says what happens to a token in play whose log-probability is not a number: `raise` an error
    (default), `drop` the token (torchtitan), let its log-ratios be 0, hence its weight `one` (AReaL), or give it
    the coefficient `zero` while it still counts in denominators (NeMo-RL).

    Class attributes:
        paper_parts: Parts, as an expression, that `NAME:paper` adds: the paper's own advantage and aggregation.
        pulls: Whether it has a term of its own that the advantage does not multiply.
    """

    paper_parts: ClassVar[str] = ""
    pulls: ClassVar[bool] = False
    nonfinite: str = choice("raise", "drop", "one", "zero")

    @property
    def own_revision(self) -> int:
        """One more for a pull where tokens are rejected: they kept it."""
        rejects = self.nonfinite == "zero" or any(mask.rejected == "counted" for mask in self.parts.masks)
        return self.revision + int(self.pulls and rejects)

    @abstractmethod
    def terms(self, ev: EvidenceView) -> Terms:
        """The surrogate: u, k and what was clipped."""

    def __call__(self, batch: Batch) -> Update:
        """The coefficients of one optimizer step; nothing in the batch is changed.

        Raises:
            MissingEvidence: The batch lacks a field in `needs`.
            NonFiniteEvidence: A token in play or a valid row has a value that is not a number.
            BatchError: A reward or an advantage is beyond `LARGEST_REWARD`, or a squared norm is negative.
            EvidenceOrderError: A part reads a value that is not known in its phase.
            MethodError: A part that does not ship returns a wrong shape or type, or NaN.
        """
        if not self.all_ship and batch.leading:
            return run_by_run(self, batch)
        with torch.no_grad():
            return self._update(self.evidence(batch))

    def evidence(self, batch: Batch) -> EvidenceView:
        """The batch with rows admitted and the advantage known: what step rules, weights and masks read.

        Raises:
            MissingEvidence: The batch lacks a field in `needs`.
            NonFiniteEvidence: A token in play or a valid row has a value that is not a number.
            BatchError: A reward or an advantage is beyond `LARGEST_REWARD`, or a squared norm is negative.
            EvidenceOrderError: A part reads a value that is not known in its phase.
        """
        missing = [name for name in self._fields_needed if getattr(batch, name) is None]
        if missing:
            raise missing_evidence(self.canonical, missing)
        ev = EvidenceView(batch, self.nonfinite)
        for admission in self.parts.admissions:
            ev.enter("admission", admission.name)
            ev.admit(checked(admission, "admit", admission.admit(ev), ev, ROWS_KEPT))
        ev.pair()  # not a number where it counts: refused even by methods without a ratio
        ev.enter("baseline", self.parts.baseline.name)
        advantage = ev.advantage = self._advantage(ev)
        for part in self.parts.regularizers:
            ev.enter("penalty", part.name)
            penalty = checked_if_any(part, "penalty", part.penalty(ev), ev, TOKENS)
            if penalty is not None:
                advantage = advantage - penalty
        ev.advantage = advantage
        return ev

    @cached_property
    def _fields_needed(self) -> tuple[str, ...]:
        versions = {"version"} if any("version" in part.reach.reads for part in (self, *self.parts)) else set()
        return tuple(sorted((self.needs - {"state"}) | versions))

    def _advantage(self, ev: EvidenceView) -> Tensor:
        if ev.batch.advantage is not None:
            return bounded(ev.batch, "advantage", ev.token_field("advantage"), LARGEST_REWARD)
        part = self.parts.baseline
        given = checked(part, "advantage", part.advantage(ev.with_empty_rows(part.empty)), ev, ROWS_OR_TOKENS)
        advantage = given.to(ev.batch.logp.dtype)
        return advantage if advantage.dim() == ev.rows.mask.dim() else advantage.unsqueeze(-1)

    def _update(self, ev: EvidenceView) -> Update:
        counted = ev.rows
        ev.enter("step", self.parts.step.name)
        scale = checked(self.parts.step, "scale", self.parts.step.scale(ev), ev, SCALE)
        ess = ess_ratio_of_logs(ev.pair().row_log, counted.weighted)
        ev.apply_weight(self._extra_weight(ev))
        keep, factor, masked = self._mask(ev, counted.tokens)
        ev.enter("surrogate", self.name)
        terms = checked_terms(self, self.terms(ev), ev)
        terms.capped = self._capped(ev, terms.capped)
        parts = assemble(ev, terms, keep, factor, self._addends(ev), counted)
        metrics = {
            "share_clipped": parts.share_clipped,
            "share_masked": masked,
            "ess_ratio": ess,
            "ess_ratio_used": parts.ess_used,
        }
        return Update(
            coefficients=parts.coefficients,
            step_scale=scale,
            entropy_coefficients=self._entropy(ev, factor),
            vocabulary_coefficients=self._vocabulary(ev, factor),
            state=checked_state(self, ev.state),
            metrics=metrics,
        )

    def _extra_weight(self, ev: EvidenceView) -> Tensor | None:
        """`[..., P, G, 1|T]` product of the weights added with `+`."""
        product: Tensor | None = None
        for part in self.parts.weights:
            ev.enter("weight", part.name)
            weight = checked(part, "weight", part.weight(ev), ev, TOKENS)
            product = weight if product is None else product * weight
        return product

    def _capped(self, ev: EvidenceView, capped: Tensor | None) -> Tensor | None:
        """`[..., P, G, 1|T]` bool: where a cap of the surrogate or of an added weight acts."""
        for part in self.parts.weights:
            ev.enter("surrogate", part.name)
            added = checked_if_any(part, "capped", part.capped(ev), ev, TOKENS_KEPT)
            if added is not None:
                capped = added if capped is None else capped | added
        return capped

    def _mask(self, ev: EvidenceView, tokens: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        """Reject tokens; returns what to multiply the weight with, N `[..., P, G, 1]`, and the share rejected."""
        counted = None if ev.nonfinite_tokens is None else ~ev.nonfinite_tokens
        keeps = []
        for mask in self.parts.masks:
            ev.enter("mask", mask.name)
            keeps.append((mask.rejected, checked(mask, "keep", mask.keep(ev), ev, TOKENS_KEPT)))
        if not keeps:
            return counted, self._factor(ev), torch.zeros_like(tokens)
        both = ev.rows.mask
        for rejected, keep in keeps:
            both = both & keep
            if rejected == "counted":
                counted = keep if counted is None else counted & keep
        kept = both.sum(BATCH_AXES)
        for rejected, keep in keeps:
            if rejected == "dropped":
                ev.drop(keep)
        factor = self._factor(ev)
        for rejected, keep in keeps:
            if rejected == "apart":
                ev.drop(keep)
        return counted, factor, 1 - kept / tokens.clamp(min=1)

    def _factor(self, ev: EvidenceView) -> Tensor:
        part = self.parts.aggregation
        ev.enter("aggregation", part.name)
        return checked(part, "factor", part.factor(ev), ev, ROWS).unsqueeze(-1)

    def _addends(self, ev: EvidenceView) -> list[Tensor | None]:
        addends = []
        for part in self.parts.regularizers:
            ev.enter("surrogate", part.name)
            addends.append(checked_if_any(part, "addend", part.addend(ev), ev, TOKENS))
        return addends

    def _entropy(self, ev: EvidenceView, factor: Tensor) -> Tensor | None:
        bonuses = []
        for part in self.parts.regularizers:
            ev.enter("surrogate", part.name)
            bonus = checked_if_any(part, "entropy", part.entropy(ev), ev, TOKENS)
            bonuses += [] if bonus is None else [bonus]
        if not bonuses:
            return None
        mask = ev.rows.mask if ev.nonfinite_tokens is None else ev.rows.mask & ~ev.nonfinite_tokens
        return torch.where(mask, sum(bonuses[1:], bonuses[0]) * factor, 0.0)

    def _vocabulary(self, ev: EvidenceView, factor: Tensor) -> Tensor | None:
        """`[..., P, G, T, V]` what regularizers do to tokens that were not drawn, too."""
        every = [(part, part.vocabulary(ev)) for part in self.parts.regularizers]
        found = [checked(part, "vocabulary", term, ev, VOCABULARY) for part, term in every if term is not None]
        if not found:
            return None
        return torch.where(ev.rows.mask.unsqueeze(-1), sum(found[1:], found[0]) * factor.unsqueeze(-1), 0.0)

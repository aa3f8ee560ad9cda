"""One batch as one method sees it: masked, checked, and with what several parts ask for computed once."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import LARGEST_REWARD, POLICY_FIELDS, Batch
from vcpo_bench.methods.core.checks import bounded, finite_where, not_negative
from vcpo_bench.methods.core.errors import MissingEvidence, NonFiniteEvidence
from vcpo_bench.methods.core.phases import PhasedValues
from vcpo_bench.methods.core.policy_ratio import PolicyRatio
from vcpo_bench.methods.core.rows import Rows


class EvidenceView(PhasedValues):
    """A batch on its way through a method. Parts read it; only `Method` changes it.

    Tensors that it returns are shared between parts and must not be modified in place.

    Attributes:
        batch: The batch.
        rows: The rows and tokens in play.
        nonfinite_tokens: `[..., P, G, T]` bool, for `nonfinite=zero` the tokens whose coefficient is 0, else None.
        state: What the parts want to see in the next batch's `state`.
    """

    def __init__(self, batch: Batch, nonfinite: str = "raise") -> None:
        super().__init__()
        self.batch = batch
        self.rows = Rows.of(batch)
        self.state: dict[str, Tensor] = {}
        self.nonfinite_tokens: Tensor | None = None
        self._nonfinite = nonfinite
        self._fields: dict[str, Tensor] = {}
        self._pairs: dict[tuple[str, str], PolicyRatio] = {}
        if nonfinite in ("drop", "zero"):
            self._find_nonfinite()

    # -- what is in play -----------------------------------------------------------------------------------------------

    def admit(self, keep: Tensor) -> None:
        """Leave rows out of everything that follows, baselines and denominators included."""
        self._restrict(self.rows.admitting(keep))

    def drop(self, keep: Tensor) -> None:
        """Leave tokens out of everything that follows, lengths and denominators included."""
        self._restrict(self.rows.without_tokens(keep))

    def _restrict(self, rows: Rows) -> None:
        self.rows, self._fields, self._pairs = rows, {}, {}

    def with_empty_rows(self, rule: str) -> EvidenceView:
        """The same as a baseline wants it, which says how rows without tokens in play count.

        Args:
            rule: `counted`: as they are; `zero`: with a reward of 0; `skipped`: not at all.
        """
        if rule == "counted":
            return self
        view = copy.copy(self)
        view._fields = self._fields | {"reward": torch.where(self.rows.has_tokens, self.reward, 0.0)}
        view.rows = self.rows.without_empty() if rule == "skipped" else self.rows
        return view

    def _find_nonfinite(self) -> None:
        """Tokens with a log-probability that is not a number: dropped, or remembered to get a coefficient of 0."""
        good = torch.ones_like(self.rows.mask)
        for name in POLICY_FIELDS.values():
            value = getattr(self.batch, name)
            if value is not None:
                good &= torch.isfinite(value)
        if self._nonfinite == "drop":
            self.drop(good)
        else:
            self.nonfinite_tokens = self.rows.mask & ~good

    # -- fields --------------------------------------------------------------------------------------------------------

    def need(self, name: str) -> Tensor:
        """A field of the batch.

        Raises:
            MissingEvidence: The batch does not carry it.
        """
        value: Tensor | None = getattr(self.batch, name)
        if value is None:
            raise MissingEvidence(f"this method needs {name}, which the batch does not carry")
        return value

    def set_proximal(self, logp: Tensor) -> None:
        """Put an approximation in place of the proximal policy of the batch."""
        self.batch = replace(self.batch, proximal_logp=logp)
        self._fields.pop("proximal_logp", None)
        self._pairs = {pair: ratio for pair, ratio in self._pairs.items() if "proximal" not in pair}

    def token_field(self, name: str) -> Tensor:
        """`[..., P, G, T]` a field with zeros at masked tokens.

        Raises:
            MissingEvidence: The batch does not carry it.
            NonFiniteEvidence: It is not finite on a token in play.
        """
        if name not in self._fields:
            self._fields[name] = self._token_field(name)
        return self._fields[name]

    def _token_field(self, name: str) -> Tensor:
        value = self.need(name).to(self.batch.logp.dtype) * self.rows.mask_float
        if math.isfinite(float(value.sum())):
            return value
        given, largest = torch.where(self.rows.mask, self.need(name), 0.0), torch.finfo(value.dtype).max
        if self._nonfinite == "raise" or name not in POLICY_FIELDS.values():
            finite_where(self.batch, (name,), self.rows.mask)
        return torch.where(torch.isfinite(given), given.clamp(-largest, largest).to(value.dtype), 0.0)

    def distribution(self, name: str) -> Tensor:
        """`[..., P, G, T, V]` a field of log-probabilities of the vocabulary, as probabilities; 0 where masked.

        Raises:
            MissingEvidence: The batch does not carry it.
            NonFiniteEvidence: A probability is not a number on a token in play.
        """
        if name not in self._fields:
            found = torch.where(self.rows.mask.unsqueeze(-1), self.need(name).to(self.rows.dtype).exp(), 0.0)
            if not math.isfinite(float(found.sum())):
                where = tuple((~torch.isfinite(found)).flatten(-2).any(-1).nonzero()[0].tolist())
                raise NonFiniteEvidence(name, where, self.batch.place_of(where))
            self._fields[name] = found
        return self._fields[name]

    def row_field(self, name: str) -> Tensor:
        """`[..., P, G]` a field of the rows with zeros at rows not in play.

        Raises:
            MissingEvidence: The batch does not carry it.
            NonFiniteEvidence: It is not finite in a row in play.
            BatchError: A reward is beyond `LARGEST_REWARD`, or a squared norm is negative.
        """
        if name not in self._fields:
            self._fields[name] = self._row_field(name)
        return self._fields[name]

    def _row_field(self, name: str) -> Tensor:
        value = self.rows.only(self.need(name).contiguous())
        if name == "reward" and value.device.type != "mps":  # which has no float64
            value = value.double()  # rounding of a float32 mean makes equal rewards differ, and 0 / 0 a full step
        limit = LARGEST_REWARD if name == "reward" else torch.finfo(value.dtype).max
        value = bounded(self.batch, name, value, limit)
        return value if name == "reward" else not_negative(self.batch, name, value)

    @property
    def reward(self) -> Tensor:
        """`[..., P, G]` rewards, zero at rows not in play."""
        return self.row_field("reward")

    # -- ratios --------------------------------------------------------------------------------------------------------

    def pair(self, of: str = "current", to: str = "behavior") -> PolicyRatio:
        """The ratio of two policies, by token and by row, with what lies outside its bounds.

        Raises:
            MissingEvidence: The batch does not carry one of them.
            NonFiniteEvidence: Naming the field and the first row with a token in play that is not finite.
        """
        if (of, to) not in self._pairs:
            difference = (self.need(POLICY_FIELDS[of]) - self.need(POLICY_FIELDS[to])).to(self.rows.dtype).contiguous()
            ratio = PolicyRatio(difference * self.rows.mask_float, self.rows)
            if not ratio.finite:
                ratio = PolicyRatio(self._finite(difference, of, to), self.rows)
            self._pairs[of, to] = ratio
        return self._pairs[of, to]

    def _finite(self, difference: Tensor, of: str, to: str) -> Tensor:
        """The difference of log-probabilities with zeros at masked tokens, and where it is not a number."""
        value = torch.where(self.rows.mask, difference, 0.0)
        if self._nonfinite == "raise":
            finite_where(self.batch, (POLICY_FIELDS[of], POLICY_FIELDS[to]), self.rows.mask)
            return value
        return torch.where(torch.isfinite(value), value, 0.0)

    def log_ratio(self, of: str = "current", to: str = "behavior", clamp: float = math.inf) -> Tensor:
        """`[..., P, G, T]` log pi_of - log pi_to clamped to `+-clamp`, zero at masked tokens; see `pair`."""
        return self.pair(of, to).log(clamp)

    def ratio(self, of: str = "current", to: str = "behavior", clamp: float = math.inf) -> Tensor:
        """`[..., P, G, T]` exp of `log_ratio`; one at masked tokens; see `pair`."""
        return self.pair(of, to).value(clamp)

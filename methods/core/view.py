"""One batch as one method sees it: masked, checked, and with the quantities parts share computed once."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from vcpo_bench.methods.core.batch import LARGEST_REWARD, POLICY_FIELDS, Batch
from vcpo_bench.methods.core.checks import bounded, finite_where, not_negative
from vcpo_bench.methods.core.errors import MissingEvidence
from vcpo_bench.methods.core.phases import PhasedValues
from vcpo_bench.methods.core.token_passes import TokenPasses

_DISTANCES = frozenset({"router_shift"})
"""Fields of tokens that are 0 or more."""
_LARGEST_LOG = 1e30
"""Log-ratios of tokens beyond it count as it in sums over a row, which would overflow in float32."""


class EvidenceView(TokenPasses, PhasedValues):
    """A batch on its way through a method. Parts read it; only `Method` changes it.

    Tensors returned by its methods are shared between parts and must not be modified in place.

    Attributes:
        batch: The batch.
        row_mask: `[..., P, G]` bool, rows that are valid and admitted.
        mask: `[..., P, G, T]` bool, tokens that carry loss and were not dropped.
        nonfinite_tokens: `[..., P, G, T]` bool, for `nonfinite=zero` the tokens whose coefficient is 0, else None.
        state: What the parts want to see in the next batch's `state`.
    """

    def __init__(self, batch: Batch, nonfinite: str = "raise") -> None:
        super().__init__()
        self.batch = batch
        self.row_mask = batch.valid
        self._every_row = bool(batch.valid.all())
        self.mask = batch.mask if self._every_row else batch.mask & batch.valid.unsqueeze(-1)
        self.state: dict[str, Tensor] = {}
        self.nonfinite_tokens: Tensor | None = None
        self._nonfinite = nonfinite
        self._raw: dict[tuple[str, str], tuple[Tensor, float, float]] = {}
        if nonfinite in ("drop", "zero"):
            self._find_nonfinite()

    # -- the rows and tokens in play ------------------------------------------------------------------------------

    @property
    def lengths(self) -> Tensor:
        """`[..., P, G]` number of tokens in play of each row, in the dtype of `logp`."""
        return self._once(("lengths",), lambda: self.mask_float.sum(-1))

    @property
    def has_tokens(self) -> Tensor:
        """`[..., P, G]` bool, rows with a token in play."""
        return self._once(("has tokens",), lambda: self.lengths > 0)

    @property
    def divisor(self) -> Tensor:
        """`[..., P, G]` what row means divide by: the length, or 1 for rows without tokens."""
        return self._once(("divisor",), lambda: self.lengths.clamp(min=1))

    @property
    def tokens(self) -> Tensor:
        """Leading shape: number of tokens in play, in the dtype of `logp`."""
        return self._once(("tokens",), lambda: self.lengths.sum((-2, -1)))

    @contextmanager
    def empty_rows(self, rule: str) -> Iterator[None]:
        """Inside, rows without tokens in play are in `row_mask` and `reward` as a baseline wants them.

        Args:
            rule: `counted`: as they are; `zero`: with a reward of 0; `skipped`: not at all.
        """
        mask, every, cache = self.row_mask, self._every_row, self._cache
        if rule != "counted":
            reward = torch.where(self.has_tokens, self.reward, 0.0)
            self._cache = {**cache, ("row", "reward"): reward}
            if rule == "skipped":
                self._cache.pop(("group sizes",), None)
                self.row_mask, self._every_row = mask & self.has_tokens, False
        yield
        self.row_mask, self._every_row, self._cache = mask, every, cache

    def in_rows(self, value: Tensor, otherwise: float = 0.0) -> Tensor:
        """`[..., P, G]` the value at rows in play, and another elsewhere."""
        return value if self._every_row else torch.where(self.row_mask, value, otherwise)

    @property
    def partial_rows(self) -> Tensor | None:
        """`row_mask`, or None when every row is in play."""
        return None if self._every_row else self.row_mask

    @property
    def weighted_rows(self) -> Tensor | None:
        """`[..., P, G]` bool, rows in play that have a token in play, so that their weight can act; None: all rows."""
        return self.partial_rows if bool(self.has_tokens.all()) else self.row_mask & self.has_tokens

    @property
    def group_sizes(self) -> Tensor:
        """`[..., P, 1]` rows in play of each group, at least 1."""
        return self._once(("group sizes",), lambda: self.row_mask.sum(-1, keepdim=True).clamp(min=1))

    def admit(self, keep: Tensor) -> None:
        """Leave rows out of everything that follows, baselines and denominators included."""
        self.row_mask, self._every_row = self.row_mask & keep, False
        self.drop(keep.unsqueeze(-1))

    def drop(self, keep: Tensor) -> None:
        """Leave tokens out of everything that follows, lengths and denominators included."""
        self.mask = self.mask & keep
        self._raw.clear()
        self._cache.clear()

    def release(self) -> None:
        """Give the buffers back; tensors of this evidence must not be used afterwards."""
        self.give_buffers_back()
        self._raw.clear()
        self._cache.clear()

    # -- fields ---------------------------------------------------------------------------------------------------

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
        self._raw = {key: value for key, value in self._raw.items() if "proximal" not in key}
        self._cache = {key: value for key, value in self._cache.items() if "proximal" not in key}

    def token_field(self, name: str) -> Tensor:
        """`[..., P, G, T]` a field with zeros at masked tokens.

        Raises:
            MissingEvidence: The batch does not carry it.
            NonFiniteEvidence: It is not finite on a token in play.
            BatchError: A distance is negative.
        """

        def make() -> Tensor:
            value = self.need(name).to(self.batch.logp.dtype) * self.mask_float
            if math.isfinite(float(value.sum())):
                return not_negative(name, value, value.dim() - 1) if name in _DISTANCES else value
            given, largest = torch.where(self.mask, self.need(name), 0.0), torch.finfo(value.dtype).max
            if self._nonfinite == "raise" or name not in POLICY_FIELDS.values():
                finite_where(self.batch, (name,), self.mask)
            return torch.where(torch.isfinite(given), given.clamp(-largest, largest).to(value.dtype), 0.0)

        return self._once(("field", name), make)

    def row_field(self, name: str) -> Tensor:
        """`[..., P, G]` a field of the rows with zeros at rows not in play.

        Raises:
            MissingEvidence: The batch does not carry it.
            NonFiniteEvidence: It is not finite in a row in play.
            BatchError: A reward is beyond `LARGEST_REWARD`, or a squared norm is negative.
        """

        def make() -> Tensor:
            value = self.in_rows(self.need(name).contiguous())
            if name == "reward" and value.device.type != "mps":  # which has no float64
                value = value.double()  # rounding of a float32 mean makes equal rewards differ, and 0 / 0 a full step
            limit = LARGEST_REWARD if name == "reward" else torch.finfo(value.dtype).max
            value = bounded(name, value, value.dim(), limit)
            return value if name == "reward" else not_negative(name, value, value.dim())

        return self._once(("row", name), make)

    @property
    def reward(self) -> Tensor:
        """`[..., P, G]` rewards, zero at rows not in play."""
        return self.row_field("reward")

    # -- ratios ---------------------------------------------------------------------------------------------------

    def _masked_ratio(self, of: str, to: str) -> tuple[Tensor, float, float]:
        if (of, to) not in self._raw:
            value = self._difference(of, to).mul_(self.mask_float)
            low, high = (float(bound) for bound in torch.aminmax(value))
            if not (math.isfinite(low) and math.isfinite(high)):
                value = torch.where(self.mask, self._difference(of, to), 0.0)
                if self._nonfinite == "raise":
                    finite_where(self.batch, (POLICY_FIELDS[of], POLICY_FIELDS[to]), self.mask)
                else:
                    value = torch.where(torch.isfinite(value), value, 0.0)
                low, high = (float(bound) for bound in torch.aminmax(value))
            self._raw[of, to] = (value, low, high)
        return self._raw[of, to]

    def _difference(self, of: str, to: str) -> Tensor:
        first, second, dtype = self.need(POLICY_FIELDS[of]), self.need(POLICY_FIELDS[to]), self.batch.logp.dtype
        if first.dtype == second.dtype == dtype:
            return torch.sub(first, second, out=self.buffer())
        return (first - second).to(dtype)

    def raw(self, of: str = "current", to: str = "behavior") -> Tensor:
        """`[..., P, G, T]` log pi_of - log pi_to, not clamped, zero at masked tokens.

        Raises:
            NonFiniteEvidence: Naming the field and the first row with a token in play that is not finite.
        """
        return self._masked_ratio(of, to)[0]

    def log_ratio(self, of: str = "current", to: str = "behavior", clamp: float = math.inf) -> Tensor:
        """`[..., P, G, T]` the same clamped to `+-clamp`."""
        value, low, high = self._masked_ratio(of, to)
        if low >= -clamp and high <= clamp:
            return value
        return self._once(("clamped", of, to, clamp), lambda: value.clamp(-clamp, clamp))

    def ratio(self, of: str = "current", to: str = "behavior", clamp: float = math.inf) -> Tensor:
        """`[..., P, G, T]` exp of `log_ratio`; one at masked tokens."""
        key = ("ratio", of, to, clamp)
        return self._once(key, lambda: torch.exp(self.log_ratio(of, to, clamp), out=self.buffer()))

    def beyond(self, of: str = "current", to: str = "behavior", clamp: float = math.inf) -> Tensor | None:
        """`[..., P, G, T]` bool, tokens whose log-ratio the clamp changed, or None when there is none."""
        return self.outside(of, to, -clamp, clamp)

    def inside(self, of: str, to: str, low: float, high: float) -> bool:
        """Whether every log-ratio is in [low, high]."""
        _, least, most = self._masked_ratio(of, to)
        return least >= low and most <= high

    def outside(self, of: str, to: str, low: float, high: float) -> Tensor | None:
        """`[..., P, G, T]` bool, tokens whose log-ratio is not in [low, high], or None when there is none."""
        if self.inside(of, to, low, high):
            return None
        value = self._masked_ratio(of, to)[0]
        return (value < low) | (value > high)

    def row_log_ratio(self, of: str = "current", to: str = "behavior") -> Tensor:
        """`[..., P, G]` log of the sequence weight, the sum of raw log-ratios over the tokens in play."""
        value, low, high = self._masked_ratio(of, to)
        wild = low < -_LARGEST_LOG or high > _LARGEST_LOG  # sums would overflow, to both infinities in one row
        return self._once(
            ("row", of, to), lambda: (value.clamp(-_LARGEST_LOG, _LARGEST_LOG) if wild else value).sum(-1)
        )

    def row_mean_log_ratio(self, of: str = "current", to: str = "behavior") -> Tensor:
        """`[..., P, G]` log of the length-normalized sequence ratio; 0 for rows without tokens."""
        return self.row_log_ratio(of, to) / self.divisor

    # -- values that are not numbers ------------------------------------------------------------------------------

    def _find_nonfinite(self) -> None:
        """Tokens with a log-probability that is not a number: dropped, or remembered to get a coefficient of 0."""
        good = torch.ones_like(self.mask)
        for name in POLICY_FIELDS.values():
            value = getattr(self.batch, name)
            if value is not None:
                good &= torch.isfinite(value)
        if self._nonfinite == "drop":
            self.drop(good)
        else:
            self.nonfinite_tokens = self.mask & ~good

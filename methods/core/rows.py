"""The rows and tokens of a batch that are in play."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from vcpo_bench.lazy_torch import Tensor, torch
from vcpo_bench.methods.core.batch import Batch
from vcpo_bench.methods.core.masking import as_number, gate


@dataclass(frozen=True, eq=False)
class Rows:
    """What admissions and masks have left of a batch. It does not change: leaving something out makes another one.

    Attributes:
        valid: `[..., P, G]` bool, rows that are valid and admitted.
        mask: `[..., P, G, T]` bool, tokens that carry loss and were not dropped.
        every: Whether every row is in play, so that nothing need be selected by row.
        dtype: Of lengths and of masks as numbers: that of `logp`.
    """

    valid: Tensor
    mask: Tensor
    every: bool
    dtype: torch.dtype

    @classmethod
    def of(cls, batch: Batch) -> Rows:
        """All valid rows of a batch."""
        every = bool(batch.valid.all())
        mask = batch.mask if every else batch.mask & batch.valid.unsqueeze(-1)
        return cls(batch.valid, mask, every, batch.logp.dtype)

    def admitting(self, keep: Tensor) -> Rows:
        """Without the rows for which `keep[..., P, G]` is False."""
        return replace(self, valid=self.valid & keep, mask=self.mask & keep.unsqueeze(-1), every=False)

    def without_tokens(self, keep: Tensor) -> Rows:
        """Without the tokens for which `keep[..., P, G, 1|T]` is False; their rows stay, even empty ones."""
        return replace(self, mask=self.mask & keep)

    def without_empty(self) -> Rows:
        """Without the rows that have no token in play."""
        return replace(self, valid=self.nonempty, every=False)

    # -- how many ------------------------------------------------------------------------------------------------------

    @cached_property
    def mask_float(self) -> Tensor:
        """`[..., P, G, T]` the mask as zeros and ones."""
        return as_number(self.mask, self.dtype).contiguous()

    @cached_property
    def lengths(self) -> Tensor:
        """`[..., P, G]` number of tokens in play of each row."""
        return self.mask_float.sum(-1)

    @cached_property
    def has_tokens(self) -> Tensor:
        """`[..., P, G]` bool, rows with a token in play."""
        return self.lengths > 0

    @cached_property
    def divisor(self) -> Tensor:
        """`[..., P, G]` what row means divide by: the length, or 1 for rows without tokens."""
        return self.lengths.clamp(min=1)

    @cached_property
    def tokens(self) -> Tensor:
        """Leading shape: number of tokens in play."""
        return self.lengths.sum((-2, -1))

    @cached_property
    def group_sizes(self) -> Tensor:
        """`[..., P, 1]` rows in play of each group, at least 1."""
        return self.valid.sum(-1, keepdim=True).clamp(min=1)

    @property
    def nonempty(self) -> Tensor:
        """`[..., P, G]` bool, rows in play that have a token in play."""
        return self.valid & self.has_tokens

    @property
    def weighted(self) -> Tensor | None:
        """`nonempty`, whose weights can act, or None for all rows."""
        if bool(self.has_tokens.all()):
            return None if self.every else self.valid
        return self.nonempty

    # -- values of what is in play -------------------------------------------------------------------------------------

    def only(self, value: Tensor) -> Tensor:
        """`[..., P, G]` the value at rows in play, 0 elsewhere."""
        return value if self.every else torch.where(self.valid, value, 0.0)

    def gate(self, value: Tensor, keep: Tensor | None = None) -> Tensor:
        """`value[..., P, G, 1|T]` where a token is in play and `keep` says so, else exactly 0.

        Args:
            value: It may be infinite where it is left out.
            keep: `[..., P, G, 1|T]` bool, or zeros and ones; None: every token in play.
        """
        return gate(value, self.mask_float if keep is None else self.mask_float * as_number(keep, self.dtype))

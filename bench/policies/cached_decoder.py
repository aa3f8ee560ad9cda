"""The part of decoding that every embedded policy shares: the key-value cache, its room, and the rows in it."""

from torch import Tensor


class CachedDecoder:
    """Responses decoded token by token on a key-value cache.

    Attributes:
        caches: One per layer, [..., position, row].
        position: Positions filled so far; of the next token fed.
    """

    caches: list[Tensor]
    position: int

    @property
    def room(self) -> int:
        """Steps for which the cache has room."""
        return self.caches[0].shape[-2] - self.position

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, int64 [rows]; later steps take and return them in that order."""
        past = self.position
        for index, cache in enumerate(self.caches):
            kept = cache.new_empty(*cache.shape[:-1], len(rows))
            kept[..., :past, :] = cache[..., :past, :].index_select(-1, rows)
            self.caches[index] = kept

"""Samplers."""

from __future__ import annotations

from typing import Any

from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind


class SamplerKind(CatalogKind):
    """Ways to draw responses from a policy."""

    def __init__(self) -> None:
        super().__init__("sampler", "samplers", "vcpo_bench.bench.samplers.catalog")

    def particulars(self, kind: Any) -> list[tuple[str, str]]:
        """What it needs, and whether its cells can be replayed."""
        exact = "its cells can be replayed bit for bit (probe, fork)"
        return [
            ("needs", "a language model: --model" if kind.needs_language_model else ""),
            ("exact", exact if kind.exact else "no: its cells cannot be replayed (probe, fork)"),
        ]

"""From the word a user types to a kind."""

from __future__ import annotations

import importlib

from vcpo_bench.commands.support.kinds.base import Kind, Listing
from vcpo_bench.commands.support.kinds.detectors import DetectorKind
from vcpo_bench.commands.support.kinds.from_catalog import CatalogKind
from vcpo_bench.commands.support.kinds.methods import MethodKind, PartKind
from vcpo_bench.commands.support.kinds.particular import AnalysisKind, SamplerKind, SignalKind, TaskKind
from vcpo_bench.commands.support.kinds.presets import PresetKind
from vcpo_bench.errors import UsageError
from vcpo_bench.naming.grammar import unknown_name


def kinds() -> list[Kind]:
    """Every kind, in the order of the help."""
    return [
        MethodKind(),
        PartKind(),
        TaskKind(),
        CatalogKind("regime", "regimes", "vcpo_bench.bench.regimes", template=True),
        CatalogKind("optimizer", "optimizers", "vcpo_bench.bench.optimizers.catalog"),
        CatalogKind("policy", "policies", "vcpo_bench.bench.policies.catalog"),
        SamplerKind(),
        CatalogKind("trainer", "trainers", "vcpo_bench.bench.trainers.catalog"),
        CatalogKind("component", "components", "vcpo_bench.bench.replay.mismatch.component"),
        CatalogKind("launcher", "launchers", "vcpo_bench.bench.running.schedulers.catalog"),
        CatalogKind("tracker", "trackers", "vcpo_bench.bench.outside.trackers.catalog"),
        SignalKind(),
        DetectorKind(),
        AnalysisKind(),
        PresetKind(),
    ]


def kinds_listing() -> Listing:
    """The table of `vcpo-bench ls`: the kinds, and what can be done with each."""
    rows = [
        (kind.plural, f"show {kind.singular} NAME", f"new {kind.singular} NAME" if kind.has_template else "-")
        for kind in kinds()
    ]
    return Listing(("kind", "explain one", "write one"), rows, "vcpo-bench ls KIND lists what there is of a kind.")


def load_catalogs() -> None:
    """Load every catalog, so that plug-in files can define entries of all of them."""
    for kind in kinds():
        if kind.module:
            importlib.import_module(kind.module)


def find_kind(word: str, *, plural: bool = False, template: bool = False) -> Kind:
    """The kind that a word names, in the singular or the plural.

    Args:
        word: What the user typed.
        plural: Whether the error for an unknown word names the kinds in the plural.
        template: Whether it names only the kinds that `new` can write.

    Raises:
        UsageError: There is no such kind.
    """
    known = kinds()
    for kind in known:
        if word in (kind.singular, kind.plural):
            return kind
    named = [kind for kind in known if kind.has_template or not template]
    raise UsageError(unknown_name("kind", word, [kind.plural if plural else kind.singular for kind in named]))

"""ESS and collapse: a map of every cell, and what measurements do around the onset of a failure."""

from __future__ import annotations

from functools import partial

from vcpo_bench.reports.document import Block, Picture
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.place import Place
from vcpo_bench.reports.plots.maps import ess_map
from vcpo_bench.reports.plots.survival_and_onset import at_onset
from vcpo_bench.reports.sections.pictures import scenes
from vcpo_bench.reports.study import Study

PLACE = Place("ESS and collapse", 60)


def blocks(study: Study, ledger: Ledger) -> list[Block]:
    """The maps, then the measurements aligned at the onset."""
    return [*scenes(study, "ess-map", ess_map), Picture("ess-vs-collapse", partial(at_onset, study))]

"""`lab analyze gradients`: how large gradients are, how often they are clipped, and which trajectories carry them."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.analysis.caveats import note_on_recording
from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.diagnostics import gradient_sentences as say
from vcpo_bench.analysis.diagnostics.gradients import contribution_medians, contribution_table, norm_table
from vcpo_bench.analysis.diagnostics.seed_groups import with_updates
from vcpo_bench.analysis.findings import Findings, agreeing, own_key
from vcpo_bench.analysis.results import GROUP, Results


@dataclass(frozen=True, kw_only=True)
class Gradients(Analysis):
    """`vcpo-bench lab analyze gradients`."""

    name = "gradients"
    summary = "How large gradients are, how often they are clipped, which trajectories carry them"

    def run(self, results: Results) -> Findings:
        """Tables `norms`; where score norms were recorded, `contributions` (per update) and `contribution_medians`."""
        cells = with_updates(results)
        found = Findings({"norms": norm_table(results)}, {"norms": agreeing(cells, *GROUP)})
        found.statements += [*say.largest_norms(found), *say.strongest_scaling(found)]
        per_update = contribution_table(results)
        if per_update.empty:
            text = (
                "No score norms were recorded: contributions per trajectory and the noise of the mean gradient need "
                "runs with --record full."
            )
            note_on_recording(found, results, text)
            return found
        found.tables |= {"contributions": per_update, "contribution_medians": contribution_medians(per_update, cells)}
        recorded = cells[cells["key"].isin(per_update["key"])]
        found.cells_behind |= {"contributions": own_key, "contribution_medians": agreeing(recorded, *GROUP)}
        found.statements += say.shares_of_trajectories(found)
        return found

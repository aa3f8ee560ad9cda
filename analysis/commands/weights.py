"""`lab analyze weights`: how much of a batch still counts, how heavy the tails are, and what KL says already."""

from __future__ import annotations

from dataclasses import dataclass

from vcpo_bench.analysis.caveats import note_on_recording
from vcpo_bench.analysis.commands.base import Analysis
from vcpo_bench.analysis.diagnostics import weight_sentences as say
from vcpo_bench.analysis.diagnostics.seed_groups import with_updates
from vcpo_bench.analysis.diagnostics.trajectory_weights import sample_tables
from vcpo_bench.analysis.diagnostics.weights import ess_pairs, ess_table, kl_explained_table, kl_table
from vcpo_bench.analysis.findings import Findings, agreeing, own_key
from vcpo_bench.analysis.results import GROUP, Results


@dataclass(frozen=True, kw_only=True)
class Weights(Analysis):
    """`vcpo-bench lab analyze weights`."""

    name = "weights"
    summary = "How much of each batch still counts: ESS, tail indices, and what KL says already"

    def run(self, results: Results) -> Findings:
        """Tables `ess`, `kl`, `kl_explained`; where trajectories were recorded, `per_update`, `by_lag` and `tails`."""
        cells = with_updates(results)
        pairs = ess_pairs(results)
        tables = {"ess": ess_table(results), "kl": kl_table(results, pairs)}
        tables["kl_explained"] = kl_explained_table(results, pairs=pairs)
        del pairs  # as large as a few columns of all updates
        behind = {"ess": agreeing(cells, *GROUP), "kl": agreeing(cells, *GROUP), "kl_explained": agreeing(cells)}
        found = Findings(tables, behind)
        found.statements += [*say.ess_by_lag(found), *say.finite_batch_bias(found), say.kl_says_already(found)]
        recorded = sample_tables(results)
        if recorded["per_update"].empty:
            text = (
                "No trajectories were recorded: ESS by lag, tail indices, gradient ESS and |TIS - 1| need runs with "
                "--record diagnostics (gradient ESS and token ratios: --record full)."
            )
            note_on_recording(found, results, text)
            return found
        sampled = cells[cells["key"].isin(recorded["per_update"]["key"])]
        found.tables |= recorded
        found.cells_behind |= {"per_update": own_key, "tails": own_key}
        found.cells_behind["by_lag"] = agreeing(sampled, "task", "method", "staleness")
        found.statements += say.tail_indices(found)
        return found

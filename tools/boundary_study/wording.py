"""What the page of the boundary study says of a null model, in words made from its row."""

from __future__ import annotations

import pandas as pd
from study_pages.markdown_table import number

from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.prediction.null_models import DRAWS, WITHIN
from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD


def null_sentence(nulls: pd.DataFrame) -> str:
    """What is left of the AUROC of ESS when its series are dealt out anew among the seeds of each configuration.

    Args:
        nulls: The table `nulls` of `vcpo-bench analyze prediction`.
    """
    rows = nulls[(nulls["signal"] == PRIMARY) & (nulls["null"] == WITHIN)]
    if rows.empty:
        return f"Too few runs have a landmark {PRIMARY_LEAD} updates ahead."
    row = rows.iloc[0]
    if row["p"] < 0.05:
        verdict = "So ESS says something of the seed that its configuration does not."
    else:
        verdict = "So it is not shown that ESS says more of a seed than its configuration does."
    value, mean, low, high, p = (number(row[name]) for name in ("value", "null_mean", "null_low", "null_high", "p"))
    return (
        f"Exploratory. {PRIMARY_LEAD} updates ahead, against runs of the same task and lag whatever their method, ESS "
        f"has AUROC {value}. When its series are dealt out anew among the seeds of each configuration, it has {mean} "
        f"[{low}, {high}] (95% of {DRAWS} draws), one-sided p = {p}. {verdict}"
    )

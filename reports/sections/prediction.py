"""Could it have been known? What `analysis.prediction` says about every signal, some updates before the end."""

from __future__ import annotations

from functools import partial

from vcpo_bench.analysis.prediction.panel import PRIMARY_LEAD
from vcpo_bench.analysis.prediction.sentences import auroc_sentences
from vcpo_bench.reports.document import Block, Picture
from vcpo_bench.reports.numbers import Ledger
from vcpo_bench.reports.plots.prediction import lead_time
from vcpo_bench.reports.sections.analysis_blocks import Shown, judged_table, statements
from vcpo_bench.reports.study import Study

_COLUMNS = {
    "signal": Shown("signal", "name"),
    "n_collapsed": Shown("lost runs", "count"),
    "n_healthy": Shown("healthy runs", "count"),
    "value": Shown("AUROC [95%]", interval="low,high"),
    "p_holm": Shown("p, Holm", "p"),
    "auprc": Shown("AUPRC [95%]", interval="own"),
    "prevalence": Shown("AUPRC of a coin", digits=3),
    "verdict": Shown("reading", "name"),
}


def foretold(study: Study, ledger: Ledger) -> list[Block]:
    """Sentences, the figure over lead time and the table at the primary lead; nothing where too few runs were lost."""
    if study.foretold.empty:
        return []
    here = study.foretold[study.foretold["lead"] == PRIMARY_LEAD].sort_values("value", ascending=False, kind="stable")
    caption = (
        f"Every recorded signal {PRIMARY_LEAD} updates before the evaluation that finds a run down, against runs of "
        "the same task, regime and lag still up at that update. `vcpo-bench analyze prediction` gives the rest: alarms "
        "and their cost, increments over the baselines, nulls, held-out lags, methods and tasks."
    )
    table = judged_table(study, ledger, "auroc", here, caption, _COLUMNS)
    text = statements(study, ledger, "prediction", auroc_sentences(study.foretold))
    return [text, Picture(partial(lead_time, study), wide=True), *([table] if table else [])]

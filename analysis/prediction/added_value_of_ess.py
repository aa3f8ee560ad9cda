"""Does ESS add anything over what else is known? Differences of AUROC on the same runs, paired by the bootstrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vcpo_bench.analysis.intervals import holm
from vcpo_bench.analysis.monitoring.signal import PRIMARY
from vcpo_bench.analysis.percentile_interval import percentile_interval
from vcpo_bench.analysis.prediction.auroc import REPLICATIONS
from vcpo_bench.analysis.prediction.covariates import ESS_FAMILY, FATE, configuration_risk, features
from vcpo_bench.analysis.prediction.landmarks import Comparison, bootstrap_draws, compare, compare_signal, risk_sets
from vcpo_bench.analysis.prediction.logistic import fit, wald_p
from vcpo_bench.analysis.prediction.panel import LEADS, PRIMARY_LEAD, TOO_FEW, Array, Panel
from vcpo_bench.analysis.prediction.precision_recall import landmarks
from vcpo_bench.analysis.prediction.thresholds import Fold, fold_numbers, folds

RIVALS = ("kl_length", "kl", "grad_norm", "grad_norm_z", "reward_low", "max_weight", "tis")
"""Baselines that ESS is compared with one by one."""

BEST = "ESS alone against the best baseline"
"""The primary increment; the other comparisons are exploratory."""

Row = dict[str, Any]
_COUNTS = ("n_collapsed", "n_healthy")


def baselines(panel: Panel) -> list[str]:
    """Recorded signals that are not ESS themselves; step, lag and learning rate are among them."""
    return [name for name in panel.recorded() if name not in ESS_FAMILY]


def increment_table(panel: Panel) -> pd.DataFrame:
    """What ESS adds, by lead.

    Columns: `lead`, `comparison`, `baseline`, `n_collapsed`, `n_healthy`, `without` and `with` (AUROC),
    `value` (their difference), `low`, `high`, `p`, `verdict`, `p_holm` (over all but the primary one).
    Comparisons:

    - `ESS alone against NAME`: scores as they are, nothing fitted;
    - `ESS alone against the best baseline`: the best on the training seeds, judged on the held-out ones;
    - `ESS alone against the configuration`: the share of failures among the training seeds of the same task, method,
      lag and learning rate, which needs no look at the run at all;
    - `circumstances + ESS`, `configuration + ESS`, `best baseline + ESS` and `everything + ESS`, each against
      the same without ESS: hazard models of the training seeds judged on the held-out ones. All know step, lag,
      learning rate and task.
    """
    draws = bootstrap_draws(panel, REPLICATIONS)
    rows = []
    for lead in LEADS:
        rows += _one_by_one(panel, lead, draws)
        rows += _held_out(panel, lead, draws)
    table = pd.DataFrame(rows)
    primary = (table["lead"] == PRIMARY_LEAD) & (table["comparison"] == BEST)
    if "p" in table:
        table["p_holm"] = holm(table["p"].where(~primary))
    return table


def difference(better: Comparison, worse: Comparison, panel: Panel, draws: Array) -> Row:
    """AUROC of one score minus that of another with its paired interval, on runs that both can rank."""
    one, other = in_common(better, worse)
    runs = one.runs(panel.healthy)
    row: Row = dict(zip(_COUNTS, (few.size for few in runs), strict=True))
    if not panel.enough(*runs):
        return row | {"verdict": TOO_FEW}
    gap = one.replicates(draws, panel.cluster) - other.replicates(draws, panel.cluster)
    row |= {"without": other.auroc(), "with": one.auroc(), "value": one.auroc() - other.auroc()}
    low, high = percentile_interval(row["value"], gap)
    row |= {"low": low, "high": high, "p": wald_p(row["value"], float(np.nanstd(gap)))}
    verdict = "more" if low > 0 else "less" if high < 0 else "cannot be told apart"
    return row | {"verdict": verdict}


def held_out_odds(panel: Panel, names: list[list[str]], lead: int, parts: list[Fold]) -> Array:
    """Log odds [N, S] of failing `lead` updates later, from models fitted to the other folds.

    Args:
        panel: The runs.
        names: Signals of the model for each fold.
        lead: Of the hazard model.
        parts: Folds; runs in none stay NaN.
    """
    rows = landmarks(panel, lead, guard=0)
    odds = np.full((len(panel.runs), panel.length), np.nan)
    for fold, chosen in zip(parts, names, strict=True):
        train, test = fold.train[rows.run], fold.test[rows.run]
        if not rows.positive[train].any() or not test.any():
            continue
        table = features(panel, rows, chosen, train)
        model = fit(table[train], rows.positive[train])
        odds[rows.run[test], rows.row[test]] = model.log_odds(table[test])
    return odds


def best_baseline(panel: Panel, lead: int, fold: Fold) -> str:
    """The baseline with the greatest AUROC among the training runs."""
    sets = risk_sets(panel, lead).among(fold.train)
    areas = {name: compare_signal(panel, name, sets).auroc() for name in baselines(panel)}
    return max(areas, key=lambda name: np.nan_to_num(areas[name], nan=-1.0))


def _one_by_one(panel: Panel, lead: int, draws: Array) -> list[Row]:
    sets = risk_sets(panel, lead)
    ess = compare_signal(panel, PRIMARY, sets)
    rows = []
    for name in (one for one in RIVALS if one in panel.values):
        row: Row = {"lead": lead, "comparison": f"ESS alone against {name}", "baseline": name}
        rows.append(row | difference(ess, compare_signal(panel, name, sets), panel, draws))
    return rows


def _held_out(panel: Panel, lead: int, draws: Array) -> list[Row]:
    parts = folds(panel, "seed")
    if not parts:
        return []
    groups = fold_numbers(parts, len(panel.runs))
    sets = risk_sets(panel, lead, groups=groups)
    best = [best_baseline(panel, lead, fold) for fold in parts]
    models: dict[str, list[list[str]]] = {"circumstances": [[] for _ in parts]}
    models |= {FATE: [[FATE] for _ in parts]}
    models |= {"best baseline": [[one] for one in best], "everything": [baselines(panel) for _ in parts]}
    named = ", ".join(dict.fromkeys(best))
    alone = compare(_pick(panel, best, groups), sets)
    first: Row = {"lead": lead, "comparison": BEST, "baseline": named}
    rows = [first | difference(compare_signal(panel, PRIMARY, sets), alone, panel, draws)]
    fate = compare(_fates(panel, parts), sets)
    second: Row = {"lead": lead, "comparison": f"ESS alone against the {FATE}", "baseline": FATE}
    rows.append(second | difference(compare_signal(panel, PRIMARY, sets), fate, panel, draws))
    for label, names in models.items():
        without = compare(held_out_odds(panel, names, lead, parts), sets)
        more = compare(held_out_odds(panel, [[*one, PRIMARY] for one in names], lead, parts), sets)
        baseline = named if label == "best baseline" else label
        row: Row = {"lead": lead, "comparison": f"{label} + ESS against {label}", "baseline": baseline}
        rows.append(row | difference(more, without, panel, draws))
    return rows


def _fates(panel: Panel, parts: list[Fold]) -> Array:
    """How the training seeds of each run's configuration ended, as a score [N, S]."""
    scores = np.full((len(panel.runs), panel.length), np.nan)
    for fold in parts:
        scores[fold.test] = configuration_risk(panel, fold.train)[fold.test][:, None]
    return scores


def _pick(panel: Panel, names: list[str], groups: NDArray[np.int64]) -> Array:
    """Scores [N, S] of each run by the signal chosen for its fold."""
    scores = np.full((len(panel.runs), panel.length), np.nan)
    for i, name in enumerate(names):
        scores[groups == i] = panel.scores(name)[groups == i]
    return scores


def in_common(one: Comparison, other: Comparison) -> tuple[Comparison, Comparison]:
    """Both comparisons with nothing but the cases and controls that both can rank."""
    case, left, right = np.intersect1d(one.case, other.case, return_indices=True)
    usable = one.usable[left] & other.usable[right]
    kept = usable.any(axis=1)
    stratum = one.stratum[left][kept]
    first = Comparison(case[kept], usable[kept], one.wins[left][kept], stratum)
    return first, Comparison(case[kept], usable[kept], other.wins[right][kept], stratum)

"""The tables of the study of router mismatch: all follow from one row per run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd
from arm_study.arm_tables import means, paired
from design import LATE, SHIFT

COLUMNS = (
    "routers_changed",
    "routers_changed_engine",
    "routers_changed_lag",
    "tokens_rerouted",
    "kl_mu_theta_k3",
    "ess_ratio",
)
HALF, HARDLY = 0.5, 0.8
"""Replay removes the engine's part if the ratio of the KL lies below the first, and does not if above the second."""
ALIKE = (0.8, 1.25)
"""Bounds of a ratio that counts as 1."""
MARGIN = 0.05
"""Largest difference in reward that does not matter."""


def made(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Every table of the study, by name."""
    return {
        "levels": means(runs, ("arm", "staleness"), (*COLUMNS, "final_reward")),
        "engine": engine(runs),
        "lag": lag(runs),
        "replays": replays(runs),
        "noise": noise(runs),
        "parts": parts(runs),
        "methods": methods(runs),
        "shift": shift(runs),
    }


def engine(runs: pd.DataFrame) -> pd.DataFrame:
    """KL with replay over KL without, with noise, by lag; the verdict is that of lag 0."""
    rows = []
    for replay in ("r2", "r3"):
        found = paired(runs, (f"noise-{replay}", "noise-off"), "kl_mu_theta_k3", ratio=True)
        found.insert(0, "replay", replay)
        rows.append(found)
    table = pd.concat(rows, ignore_index=True)
    decided = (table["replay"] == "r3") & (table["staleness"] == 0)
    table["verdict"] = [
        "" if not asked else "holds" if high < HALF else "fails" if low > HARDLY else "undecided"
        for asked, low, high in zip(decided, table["low"], table["high"], strict=True)
    ]
    return table


def lag(runs: pd.DataFrame) -> pd.DataFrame:
    """Replay against none without noise, where only lag can change a route."""
    ratio = paired(runs, ("exact-r2", "exact-off"), "routers_changed_lag", ratio=True)
    ratio.insert(0, "what", "routers changed by lag, ratio")
    within = (ratio["low90"] >= ALIKE[0]) & (ratio["high90"] <= ALIKE[1])
    outside = (ratio["high"] < 1) | (ratio["low"] > 1)
    ratio["verdict"] = [
        "left" if alike else "changed" if differs else "undecided"
        for alike, differs in zip(within, outside, strict=True)
    ]
    reward = paired(runs, ("exact-r2", "exact-off"), "final_reward")
    reward.insert(0, "what", "final reward, difference")
    reward["verdict"] = [_reward_verdict(row) for row in reward.to_dict("records")]
    kl = paired(runs, ("exact-r2", "exact-off"), "kl_mu_theta_k3", ratio=True)
    kl.insert(0, "what", "KL, ratio")
    kl["verdict"] = ""
    return pd.concat([ratio, kl, reward], ignore_index=True)


def replays(runs: pd.DataFrame) -> pd.DataFrame:
    """R3 against R2 with noise: ratio of the KL and difference in reward."""
    kl = paired(runs, ("noise-r3", "noise-r2"), "kl_mu_theta_k3", ratio=True)
    kl.insert(0, "what", "KL, ratio")
    reward = paired(runs, ("noise-r3", "noise-r2"), "final_reward")
    reward.insert(0, "what", "final reward, difference")
    return pd.concat([kl, reward], ignore_index=True)


def noise(runs: pd.DataFrame) -> pd.DataFrame:
    """What noise costs in reward: of the mixture of experts, and of the dense policy."""
    rows = []
    for policy, one, other in (("moe", "noise-off", "exact-off"), ("tiny", "dense-noise", "dense-exact")):
        found = paired(runs, (one, other), "final_reward")
        found.insert(0, "policy", policy)
        rows.append(found)
    return pd.concat(rows, ignore_index=True)


def parts(runs: pd.DataFrame) -> pd.DataFrame:
    """Routers changed in all, and the sum of the parts by engine and by lag, with noise and without replay."""
    table = means(runs[runs["arm"] == "noise-off"], ("staleness",), COLUMNS[:3])
    table["sum_of_parts"] = table["routers_changed_engine"] + table["routers_changed_lag"]
    return table.drop(columns=["failed"])


def methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Each method with noise at the largest lag, by replay."""
    late = runs[(runs["staleness"] == LATE[-1]) & runs["arm"].str.startswith("noise-")]
    return means(late, ("method", "arm"), ("kl_mu_theta_k3", "ess_ratio", "final_reward")).sort_values(
        ["method", "arm"], ignore_index=True
    )


def shift(runs: pd.DataFrame) -> pd.DataFrame:
    """What RSPO's factor changes: rspo against gmpo, in reward and KL, by arm and lag."""
    own = runs[runs["arm"].str.startswith("shift-")]
    reward = paired(own, SHIFT, "final_reward", side="method", by=("arm", "staleness"))
    reward.insert(0, "what", "final reward, difference")
    reward["verdict"] = [_shift_verdict(row) for row in reward.to_dict("records")]
    kl = paired(own, SHIFT, "kl_mu_theta_k3", side="method", by=("arm", "staleness"), ratio=True)
    kl.insert(0, "what", "KL, ratio")
    kl["verdict"] = ""
    return pd.concat([reward, kl], ignore_index=True)


def _shift_verdict(row: dict[Hashable, Any]) -> str:
    side = "more" if row["low"] > 0 else "less" if row["high"] < 0 else ""
    alike = "equivalent" if row["low90"] >= -MARGIN and row["high90"] <= MARGIN else ""
    return ", ".join(filter(None, (side, alike))) or "undecided"


def _reward_verdict(row: dict[Hashable, Any]) -> str:
    if row["low90"] >= -MARGIN and row["high90"] <= MARGIN:
        return "harmless"
    return "biased" if row["low"] > 0 or row["high"] < 0 else "undecided"

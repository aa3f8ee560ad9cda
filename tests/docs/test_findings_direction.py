"""What the findings say of the direction study is recomputed from its tables."""

import pandas as pd
from boundary_study.areas import PRIMARY_LEAD
from boundary_study.verdicts import BAR
from direction_study.fates import PARTED
from page_prose import STUDIES

from vcpo_bench.analysis.wording import with_interval

STUDY = STUDIES / "direction"
PAGE = (STUDIES.parent / "findings.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split("**Which seed will fail.**")[1].split("\n**")[0].split())
CHANGES = " ".join((STUDIES.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").split())
FATES = pd.read_csv(STUDY / "fates.csv")


def test_the_direction() -> None:
    leads = pd.read_csv(STUDY / "directions.csv").query("signal == 'update_direction'").set_index("lead")
    five, row, twenty = (leads.loc[lead] for lead in (5, 10, 20))
    near, area, far = (with_interval(one["auroc"], one["low"], one["high"]) for one in (five, row, twenty))
    assert f"drawn has AUROC {area}: undecided against the bar of {BAR:g}, and not told from ESS" in TEXT
    assert f"Without bars: {near} at 5 updates ahead" in TEXT
    assert f"and {far} at 20." in TEXT
    assert f"(AUROC {area})" in CHANGES
    assert row["verdict"] == "undecided"
    assert row["low"] < 0.5 < row["high"]
    assert pd.read_csv(STUDY / "rival.csv").loc[0, "verdict"] == "undecided"
    assert f"the same {len(pd.read_csv(STUDY / 'runs.csv'))} runs were trained again" in TEXT


def test_the_fates() -> None:
    row = pd.read_csv(STUDY / "agreement.csv").iloc[0]
    unknown = row["runs"] - row["identical"] - row["known"]
    kept = f"{row['identical']} of the {row['runs']} pairs of runs are identical and {unknown} have an unknown fate"
    assert (
        f"{kept}; of the other {row['known']}, {row['agree']} agree, and {row['by_chance']:.0f} would by chance."
        in TEXT
    )
    assert f"{row['agree']} of {row['known']} pairs of runs meet the same fate" in CHANGES
    kappa = with_interval(row["kappa"], row["low"], row["high"])
    assert f"Kappa is {kappa}: by the registered rule it is undecided whether the seed decides nearly all." in TEXT
    assert f"(kappa {kappa}: undecided whether the seed decides nearly all)" in CHANGES
    assert row["verdict"] == "undecided"
    assert ((FATES["kappa"] == 1).sum(), len(FATES)) == (5, 8)
    assert "It is 1 in five of the eight configurations" in TEXT
    clip = FATES.set_index(["task", "method"]).loc[("walk", "clip")].squeeze()
    assert clip["kappa"] == FATES["kappa"].min()
    apart = f"{clip['known'] - clip['agree']:.0f} of the {row['known'] - row['agree']:.0f} disagreements."
    assert f"and {clip['kappa']:.2f} for `clip` on `walk`, which has {apart}" in TEXT


def test_the_partings() -> None:
    failed, before = (pd.read_csv(STUDY / "partings.csv")[name].sum() for name in ("failed", "parted_before"))
    assert f"of the {failed} runs that failed this time, {before} had parted from their first training" in TEXT
    assert f"(ESS scores {PARTED:g} apart) {PRIMARY_LEAD} updates before the fall." in TEXT

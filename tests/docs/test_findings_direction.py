"""What the findings say of the direction study is recomputed from its tables."""

import pandas as pd
from page_prose import STUDIES

from vcpo_bench.analysis.wording import with_interval

STUDY = STUDIES / "direction"
PAGE = (STUDIES.parent / "findings.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split("**Which seed will fail.**")[1].split("\n**")[0].split())
CHANGES = " ".join((STUDIES.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").split())
FATES = pd.read_csv(STUDY / "fates.csv")
PARTINGS = pd.read_csv(STUDY / "partings.csv")


def test_the_direction() -> None:
    row = pd.read_csv(STUDY / "directions.csv").set_index(["signal", "lead"]).loc[("update_direction", 10)]
    area = with_interval(row["auroc"], row["low"], row["high"])
    assert f"drawn has AUROC {area}: undecided, and not told from ESS" in TEXT
    assert f"(AUROC {area})" in CHANGES
    assert row["verdict"] == "undecided"
    assert row["low"] < 0.5 < row["high"]
    assert pd.read_csv(STUDY / "rival.csv").loc[0, "verdict"] == "undecided"
    assert f"the same {len(pd.read_csv(STUDY / 'runs.csv'))} runs were trained again" in TEXT


def test_the_fates() -> None:
    row = pd.read_csv(STUDY / "agreement.csv").iloc[0]
    assert f"{row['agree']} of {row['known']} do; {row['by_chance']:.0f} would by chance." in TEXT
    assert f"{row['agree']} of {row['known']} seeds meet the same fate as before" in CHANGES
    kappa = with_interval(row["kappa"], row["low"], row["high"])
    assert f"Kappa is {kappa}: by the registered rule it is undecided" in TEXT
    assert row["verdict"] == "undecided"
    assert ((FATES["kappa"] == 1).sum(), len(FATES)) == (5, 8)
    assert "It is 1 in five of the eight configurations" in TEXT
    parted, alike = row["parted"], row["parted_agree"]
    whole = row["known"] - parted, row["agree"] - alike
    assert f"Of the {parted} pairs that part {alike} agree, of the {whole[0]} that do not {whole[1]}." in TEXT


def test_the_partings() -> None:
    place = {"task": "walk", "method": "clip"}
    clip, parted = (table.set_index(list(place)).loc[tuple(place.values())].squeeze() for table in (FATES, PARTINGS))
    pairs = f"{parted['parted']:.0f} of {parted['runs']:.0f} pairs part."
    assert f"and {clip['kappa']:.2f} for `clip` on `walk`, where {pairs}" in TEXT
    assert clip["kappa"] == FATES["kappa"].min()
    assert parted["parted"] == PARTINGS["parted"].max()
    failed, before = PARTINGS["failed"].sum(), PARTINGS["parted_before"].sum()
    assert f"Of {failed} failed runs {before} had parted 10 updates before the fall." in TEXT

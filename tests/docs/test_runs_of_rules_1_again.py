"""What the pages say of the runs of rules 1.0 that were made again is in the tables made from them."""

import json
from pathlib import Path
from zipfile import ZipFile

import make_calibration
import pandas as pd
import prediction_again
import protocol_again
import pytest
from page_prose import STUDIES, prose
from run_archives.archive import FACTS
from run_archives.unpack import unpack_folder

from vcpo_bench.analysis.results import load_comparable

PREDICTION, PROTOCOL = STUDIES / "prediction", STUDIES / "protocol"
AGAIN = PREDICTION / "again"
TEXT = prose(PREDICTION / "README.md").split("## Made again")[1].split("## What the probe says")[0]
FINDINGS = prose(STUDIES.parent / "findings.md")
CHANGES = prose(STUDIES.parents[1] / "CHANGELOG.md")
AUROC = pd.read_csv(AGAIN / "auroc.csv").set_index(["signal", "lead"])
GAPS = pd.read_csv(AGAIN / "differences.csv").set_index("rival")
SPEEDUP = pd.read_csv(PROTOCOL / "again" / "speedup.csv")


@pytest.mark.parametrize("tool", [prediction_again, protocol_again], ids=lambda tool: str(tool.__name__))
def test_the_pages_follow_from_the_shipped_tables(tool: type[prediction_again], tmp_path: Path) -> None:
    before = tool.PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "README.md"
    copy.write_text(before, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool, "PAGE", copy)
        tool.refresh()
    assert copy.read_text(encoding="utf-8") == before, f"run: python {tool.TOOL}"


def test_every_run_meets_the_same_fate() -> None:
    ended = pd.read_csv(AGAIN / "fates.csv")
    assert len(ended) == 672
    assert (ended["onset"].isna() == ended["onset_first"].isna()).all()
    assert "all 672 meet the same fate" in prose(PROTOCOL / "README.md")
    assert f"{len(ended)} of {len(ended)} meet the same fate" in TEXT
    assert "each meets the same fate" in FINDINGS
    assert "each meets the same fate" in CHANGES
    own = pd.read_csv(PROTOCOL / "again" / "cells.csv")
    pd.testing.assert_series_equal(
        own["onset"].dropna().sort_values(), ended["onset"].dropna().sort_values(), check_index=False
    )


def test_what_is_said_of_ess() -> None:
    row = AUROC.loc[("ess", 20)]
    said = f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
    assert row["verdict"] == "can tell"
    assert (
        f"**ESS can tell which runs will fail, with an interval that holds**: {said}, of failures of 9 units." in TEXT
    )
    assert row["units"] == 9
    assert f"with an interval over configurations ESS has {said}." in FINDINGS
    assert f"ESS, 20 updates ahead, has AUROC {said}, with an interval over configurations" in CHANGES
    words = GAPS["verdict"].to_dict()
    assert words.pop("kl") == words.pop("token_ess") == "equivalent"
    assert set(words.values()) == {"undecided"}
    assert "both are equivalent within 0.05. Against the training reward and gradient norms it is undecided." in TEXT
    assert "It is equivalent within 0.05 to the KL and to token ESS, and undecided against the training" in FINDINGS


def test_that_the_estimates_are_those_of_the_first_runs() -> None:
    first = pd.read_csv(PREDICTION / "tables" / "auroc.csv").set_index(["signal", "lead"])["value"]
    assert (AUROC["value"] - first.reindex(AUROC.index)).abs().max() < 0.015


def test_the_null_models() -> None:
    nulls = pd.read_csv(AGAIN / "tables" / "nulls.csv").query("signal == 'ess'").set_index("null")
    method, seeds = nulls.loc["permuted within lag and method"], nulls.loc["permuted within configuration"]
    said = f"score {method['null_mean']:.2f} [{method['null_low']:.2f}, {method['null_high']:.2f}] instead of 0.95"
    assert f"{said} (p = {method['p']:.3f});" in TEXT
    assert f"among the seeds of one configuration they score {seeds['null_mean']:.2f} (p = {seeds['p']:.1f})." in TEXT


def test_when_vcpo_is_sooner() -> None:
    own = SPEEDUP[SPEEDUP["share"] == protocol_again.SHOWN].set_index(["task", "method", "staleness"])
    chain = own.loc[("chain", "vcpo")]
    assert (chain["updates_ratio_low"] > 1).all()
    low, high = chain["updates_ratio"].min(), chain["updates_ratio"].max()
    assert (
        f"on `chain` VCPO is {low:.2f} to {high:.2f} times as soon as synchronous training at lags 1 to 64" in FINDINGS
    )
    assert f"90% of the synchronous gain {low:.2f} to {high:.2f} times as soon as synchronous training" in CHANGES
    walk = own.loc["walk"].query("staleness > 1")["reached"]
    assert walk.sum() == walk["vcpo", 16] == 1
    assert "on `walk` no method gets there at lag 16 or 64, but for one run of VCPO" in FINDINGS


def test_which_archives_are_of_rules_1() -> None:
    old = set()
    for path in sorted(STUDIES.glob("*/updates/**/*.zip")):
        with ZipFile(path) as archive:
            facts = json.loads(archive.read(FACTS))
        if {cell["rules_version"] for cell in facts} != {"2.0"}:
            old.add(path.relative_to(STUDIES).parts[0])
    assert old == {"protocol"}
    assert "*protocol* ran under rules 1.0, all others under 2.0." in prose(STUDIES / "realized-lags" / "README.md")


@pytest.mark.slow
def test_the_tables_follow_from_the_updates_that_ship(tmp_path: Path) -> None:
    unpack_folder(PROTOCOL / "updates", tmp_path)
    results = load_comparable(tmp_path)
    for name, made in prediction_again.tables(results).items():
        ships = pd.read_csv(AGAIN / f"{name}.csv", keep_default_na=True)
        pd.testing.assert_frame_equal(made.replace("", float("nan")), ships, check_dtype=False, rtol=1e-4, atol=1e-6)
    made = protocol_again.speedup(results).reset_index(drop=True)
    pd.testing.assert_frame_equal(made, SPEEDUP, check_dtype=False, rtol=1e-5)
    made = make_calibration.cells(results)
    pd.testing.assert_frame_equal(made, pd.read_csv(protocol_again.CELLS), check_dtype=False)

"""Pages with results say once what `clip` and `gspo` are here, and what lag `fifo` gives."""

from pathlib import Path

import pandas as pd
import pytest
from page_prose import BENCHMARKS, STUDIES, prose
from run_archives.archive import KEY, read

from vcpo_bench.records import STEPS_FILE

WITH_CLIP = [
    *(
        STUDIES / name / "README.md"
        for name in (
            "protocol",
            "prediction",
            "every-method",
            "tool-use",
            "tinker",
            "vllm",
            "boundary",
            "configurations",
            "direction",
            "phase",
        )
    ),
    STUDIES / "language-models" / "README.md",
    STUDIES / "prediction" / "probe.md",
    BENCHMARKS / "regimes.md",
    BENCHMARKS / "async.md",
]
UNDER_RULES_1 = [STUDIES / "protocol" / "README.md", STUDIES / "prediction" / "probe.md"]
WITH_FIFO = [STUDIES / name / "README.md" for name in ("cures", "step-rules", "every-method", "moe", "tool-use")]
EXACT = "exactly the requested lag after the fill"


@pytest.mark.parametrize("page", WITH_CLIP, ids=lambda page: page.parent.name + "/" + page.name)
def test_the_ratio_of_clip_is_named_once(page: Path) -> None:
    assert prose(page).count("verl's bypass mode") == 1


def test_how_much_the_bounds_of_gspo_clip() -> None:
    parts = pd.read_csv(STUDIES / "scorecard" / "verdicts.csv").query("fact == 18").set_index("part")["value"]
    shares = sorted(parts[["gspo on walk", "gspo on chain"]])
    said = f"clip {shares[0]:.0%} to {shares[1]:.0%} of the tokens at lag 1".replace("% to", " to")
    assert said in prose(STUDIES / "every-method" / "README.md")


@pytest.mark.parametrize("page", UNDER_RULES_1, ids=lambda page: page.parent.name)
def test_how_much_they_clipped_under_rules_1(page: Path) -> None:
    """In the runs made again; the registration of the scorecard says more of others, which are gone."""
    assert "`gspo` clipped 47 to 58% of tokens at lag 1" in prose(STUDIES / "scorecard" / "registration.md")
    assert "under these rules" in prose(page)
    said = []
    for task in ("chain", "walk"):
        steps = read(STUDIES / "protocol" / "updates" / f"{task}_gspo_fifo_1.zip").tables[STEPS_FILE].to_pandas()
        shares = 100 * steps.groupby(KEY)["share_clipped"].mean()
        said.append(f"{shares.min():.0f} to {shares.max():.0f}%")
    assert f"clip {said[0]} of the tokens on `chain` and {said[1]} on `walk` at lag 1" in prose(page)
    assert "34 to 40%" not in prose(page)


@pytest.mark.parametrize("page", WITH_FIFO, ids=lambda page: page.parent.name)
def test_the_lag_of_fifo_is_said_and_shown_where_it_is_kept(page: Path) -> None:
    text = prose(page)
    assert EXACT in text
    assert "worse than synchronous training is not reported" in text
    runs = pd.read_csv(page.with_name("runs.csv"))
    if "lag" in runs:
        assert (runs["lag"] == runs["staleness"]).all()
    else:
        assert "`runs.csv` has no column of it" in text


def test_pages_of_studies_with_lag_link_the_realized_ones() -> None:
    studies = pd.read_csv(STUDIES / "realized-lags" / "lags.csv")["study"].unique()
    assert len(studies) >= 12
    for name in studies:
        assert "(../realized-lags/README.md)" in prose(STUDIES / name.partition("/")[0] / "README.md"), name

"""Every number of the findings that the scorecard gives is recomputed from its table of verdicts."""

import re
from pathlib import Path

import pandas as pd
from scorecard.fact import VERDICTS

ROOT = Path(__file__).parents[2]
VERDICT_TABLE = pd.read_csv(ROOT / "docs" / "studies" / "scorecard" / "verdicts.csv")
FINDINGS = " ".join((ROOT / "docs" / "findings.md").read_text().split())


def counts_in_words(verdicts: "pd.Series[str]") -> str:
    """How many facts have which verdict, as the page says it; one verdict per fact."""
    counts = verdicts.value_counts().reindex(list(VERDICTS), fill_value=0)
    words = [f"{count or 'none'} {verdict}" for verdict, count in counts.items() if count or verdict != "not run"]
    words[0] = words[0].replace(" reproduced", " are reproduced")
    return f"{', '.join(words[:-1])} and {words[-1]}"


def test_scorecard_counts() -> None:
    facts = VERDICT_TABLE.groupby("fact")["fact_verdict"].first()
    assert f"tests {len(facts)} published facts" in FINDINGS
    assert counts_in_words(facts) in FINDINGS
    named = re.findall(r"fact (\d+), (undecided|reproduced|refuted)\)", FINDINGS)
    assert {int(fact): verdict for fact, verdict in named} == {
        number: facts[number] for number in (1, 2, 3, 4, 6, 8, 9, 19, 21, 23)
    }


def test_counts_when_every_fact_has_run() -> None:
    said = counts_in_words(pd.Series(["reproduced", "refuted", "refuted"]))
    assert said == "1 are reproduced, 2 refuted, none undecided and none cannot be tested here"


def test_scorecard() -> None:
    parts = VERDICT_TABLE.set_index(["fact", "part"])
    for part in ("walk, learning rate 0.0008", "chain, learning rate 0.0016"):
        assert parts.loc[(1, part), "verdict"] == "reproduced"
        figure = parts.loc[(1, part), "figure"]
        assert re.search(r"tis 8 of 8 .*vcpo 0 of 8 .*at lag 0 0 of 8", figure)
    lost = {task: parts.loc[(3, f"{task}: tis fails, opob alone survives"), "figure"] for task in ("walk", "chain")}
    assert "`vcpo(baseline=group)` 0 of 8, `vcpo(ess=off)` 8 of 8" in lost["walk"]
    assert "`vcpo(baseline=group)` 8 of 8, `vcpo(ess=off)` 7 of 8" in lost["chain"]
    first = parts.loc[(4, "walk: ess before kl")]
    assert first["verdict"] == "refuted"
    assert (
        f"on `walk` KL raises its alarm {-first['value']:.0f} updates earlier; on `chain` this is undecided" in FINDINGS
    )
    assert parts.loc[(4, "chain: ess before kl"), "verdict"] == "undecided"
    gap = -100 * parts.loc[(2, "end of k = 128"), ["value", "high", "low"]].astype(float)
    assert "lag 128 loses {:.0f}% [{:.0f}, {:.0f}] of the synchronous gain".format(*gap) in FINDINGS
    flat = 100 * parts.loc[(19, "vespo loses at most 15%"), ["value", "low", "high"]].astype(float)
    assert "it loses {:.0f}% [{:.0f}, {:.0f}]".format(*flat) in FINDINGS
    assert parts.loc[(19, "sapo is steeper than grpo and gspo"), "verdict"] == "reproduced"
    assert "failed at N = 16 and 32: 0 of 16" in parts.loc[(19, "sapo collapses"), "figure"]
    clipped = [100 * parts.loc[(18, f"gspo on {task}"), "value"] for task in ("walk", "chain")]
    sentence = "clips {:.0f}% of the tokens on `walk` at lag 1 already and {:.0f}% on `chain`"
    assert sentence.format(*clipped) in FINDINGS


def test_survival_by_cap_and_by_batch() -> None:
    figures = VERDICT_TABLE.set_index(["fact", "part"])["figure"]
    survived = dict(re.findall(r"`([^`]+)` (\d+)", figures[(8, "cap 8 in the top 2")]))
    caps = [survived[name] for name in ("tis(cap=1)", "tis(cap=2)", "tis(cap=4)", "tis", "tis(cap=32)")]
    assert f"with caps 1, 2, 4, 8 and 32 survives {', '.join(caps[:-1])} and {caps[-1]} of 300 updates" in FINDINGS
    assert f"TIS per token {survived['token-tis']}" in FINDINGS
    by_batch = r"`([a-z-]+)` at 8, 16, 32 prompts ([\d, ]+\d)"
    batches = dict(re.findall(by_batch, figures[(9, "a larger batch helps tis more")]))
    own, other = (batches[name].replace(", ", " ").split() for name in ("tis", "token-tis"))
    assert f"with 8, 16 and 32 prompts it survives {own[0]}, {own[1]} and {own[2]} updates" in FINDINGS
    assert f"TIS per token {other[0]}, {other[1]} and {other[2]}" in FINDINGS


def test_long_runs() -> None:
    parts = VERDICT_TABLE[VERDICT_TABLE["fact"] == 21].set_index("part")
    for name in ("cispo", "gspo"):
        assert parts.loc[f"{name} fails", "figure"].startswith("failed within 1,500: 0 of 4 ")
    assert "no run of CISPO or GSPO fails within 1,500 updates (0 of 4 each)" in FINDINGS
    assert "entropy doubles after update 300: 0 of 4" in parts.loc["bapo's entropy blows up", "figure"]
    assert "the entropy of BAPO doubles in none of 4" in FINDINGS

"""Every number of the findings that the scorecard gives is recomputed from its table of verdicts."""

import re
from pathlib import Path

import pandas as pd
import pytest
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


PARTS = VERDICT_TABLE.set_index(["fact", "part"])


def failed(fact: int, part: str, method: str) -> str:
    """`8 of 8`: the failed runs of a method, from the figure of a part."""
    (found,) = re.findall(rf"`?{re.escape(method)}`? (\d+ of \d+)", PARTS.loc[(fact, part), "figure"])
    return str(found)


def ran(fact: int, *words: str) -> bool:
    """Whether one run set of a fact has these words."""
    sets = VERDICT_TABLE.query("fact == @fact")["runs"].iloc[0].split(" / ")
    return any(all(word in one for word in words) for one in sets)


def test_tis_fails_and_vcpo_does_not() -> None:
    lost = set()
    for task, rate in (("walk", "0.0008"), ("chain", "0.0016")):
        part = f"{task}, learning rate {rate}"
        lost.add((failed(1, part, "tis"), failed(1, part, "vcpo"), failed(1, part, "at lag 0")))
        assert PARTS.loc[(1, part), "verdict"] == "reproduced"
        assert ran(1, f"{task} reinforce, tis", "lag 16", f"learning rate {rate}")
    ((tis, vcpo, synchronous),) = lost
    assert f"{tis} runs fail against {vcpo.split(' ')[0]} of 8, on `walk` at 8e-4 and on `chain` at 1.6e-3" in FINDINGS
    assert synchronous == "0 of 8", "where synchronous training survives"


def test_the_halves_of_vcpo() -> None:
    part = "{}: tis fails, opob alone survives"
    own = {
        (task, name): failed(3, part.format(task), f"vcpo({name})")
        for task in ("walk", "chain")
        for name in ("ess=off", "baseline=group")
    }
    said = (
        "`vcpo(ess=off)` fails in {} runs on `walk` and in {} on `chain`. ESS scaling alone, `vcpo(baseline=group)`, "
        "fails in {} on `walk` and in {} on `chain`."
    )
    places = [(task, name) for name in ("ess=off", "baseline=group") for task in ("walk", "chain")]
    assert said.format(*(own[place] for place in places)) in FINDINGS


def test_ess_and_kl() -> None:
    first = PARTS.loc[(4, "walk: ess before kl")]
    assert first["verdict"] == "refuted"
    said = f"on `walk` KL raises its alarm {-first['value']:.0f} updates earlier; on `chain` this is undecided"
    assert said in FINDINGS
    assert PARTS.loc[(4, "chain: ess before kl"), "verdict"] == "undecided"


def test_what_lag_costs_vcpo() -> None:
    gap = -100 * PARTS.loc[(2, "end of k = 128"), ["value", "high", "low"]].astype(float)
    assert "which loses {:.0f}% [{:.0f}, {:.0f}] of the gain (published".format(*gap) in FINDINGS
    folder = ROOT / "docs" / "studies" / "scorecard"
    own = pd.read_csv(folder / "runs.csv").query("task == 'walk' and method == 'vcpo' and lr == 4e-4 and steps == 500")
    curves = pd.read_csv(folder / "evals.csv.gz").merge(own[["run", "staleness"]], on="run").sort_values("step")
    last = curves.groupby(["staleness", "run"])["sampled_reward"].apply(lambda curve: curve.tail(3).mean())
    ends = last.groupby("staleness").mean()
    said = "on `walk` at 4e-4, lag 128 ends at {:.2f} after 500 updates and synchronous training at {:.2f}"
    assert said.format(ends[128], ends[0]) in FINDINGS
    assert ran(2, "walk vcpo", "lag 0, 16, 32, 64, 128", "learning rate 0.0004", "500 updates")


def test_vespo_on_stale_mini_batches() -> None:
    flat = 100 * PARTS.loc[(19, "vespo loses at most 15%"), ["value", "low", "high"]].astype(float)
    assert "on `walk` at 4e-4, from 4 to 32 of them, it loses {:.0f}% [{:.0f}, {:.0f}]".format(*flat) in FINDINGS
    assert ran(19, "walk vespo", "minibatch", "learning rate 0.0004")
    assert PARTS.loc[(19, "vespo is flatter than grpo and gspo"), "verdict"] == "reproduced"
    assert PARTS.loc[(19, "sapo is steeper than grpo and gspo"), "verdict"] == "reproduced"
    assert "failed at N = 16 and 32: 0 of 16" in PARTS.loc[(19, "sapo collapses"), "figure"]
    clipped = [100 * PARTS.loc[(18, f"gspo on {task}"), "value"] for task in ("walk", "chain")]
    sentence = "clips {:.0f}% of the tokens on `walk` at lag 1 already and {:.0f}% on `chain`"
    assert sentence.format(*clipped) in FINDINGS


@pytest.mark.parametrize(
    ("number", "published", "said"),
    [
        (2, "within about 3 points of k = 0", "(published: within about 3 points)"),
        (18, "GSPO clips about 15% of tokens", "(fact 18; published: about 15%)"),
        (8, "sequence TIS with a cap of 8 survives longest", "against the published cap of 8"),
    ],
)
def test_published_numbers_are_those_of_the_registration(number: int, published: str, said: str) -> None:
    text = (ROOT / "docs" / "studies" / "scorecard" / "registration.md").read_text()
    row = re.findall(rf"^\| {number} \| ([^|]*) \|", text, flags=re.M)[0]
    assert published in row
    assert said in FINDINGS


def test_which_rates_the_other_facts_ran() -> None:
    assert "(fact 8, refuted): at lag 16 and 6e-4, sequence TIS with caps" in FINDINGS
    assert ran(8, "walk tis", "lag 16", "learning rate 0.0006", "300 updates")
    assert all(ran(9, "walk tis, token-tis", "0.0006", f"of {batch} prompts") for batch in (8, 16, 32))
    assert "(parts of fact 21, undecided): on `walk` at 4e-4, with 4 of them, no run" in FINDINGS
    assert ran(21, "walk gspo, cispo", "minibatch", "lag 3", "learning rate 0.0004", "1500 updates")


def test_survival_by_cap_and_by_batch() -> None:
    figures = VERDICT_TABLE.set_index(["fact", "part"])["figure"]
    survived = dict(re.findall(r"`([^`]+)` (\d+)", figures[(8, "cap 8 in the top 2")]))
    caps = [survived[name] for name in ("tis(cap=1)", "tis(cap=2)", "tis(cap=4)", "tis", "tis(cap=32)")]
    assert f"with caps 1, 2, 4, 8 and 32 survives {', '.join(caps[:-1])} and {caps[-1]} of 300 updates" in FINDINGS
    assert f"TIS per token {survived['token-tis']}" in FINDINGS
    by_batch = r"`([a-z-]+)` at 8, 16, 32 prompts ([\d, ]+\d)"
    batches = dict(re.findall(by_batch, figures[(9, "a larger batch helps tis more")]))
    own, other = (batches[name].replace(", ", " ").split() for name in ("tis", "token-tis"))
    assert f"with 8, 16 and 32 prompts sequence TIS survives {own[0]}, {own[1]} and {own[2]} updates" in FINDINGS
    assert f"TIS per token {other[0]}, {other[1]} and {other[2]}" in FINDINGS


def test_long_runs() -> None:
    parts = VERDICT_TABLE[VERDICT_TABLE["fact"] == 21].set_index("part")
    for name in ("cispo", "gspo"):
        assert parts.loc[f"{name} fails", "figure"].startswith("failed within 1,500: 0 of 4 ")
    assert "no run of CISPO or GSPO fails within 1,500 updates (0 of 4 each)" in FINDINGS
    assert "entropy doubles after update 300: 0 of 4" in parts.loc["bapo's entropy blows up", "figure"]
    assert "the entropy of BAPO doubles in none of 4" in FINDINGS


def test_the_table_of_time_to_non_inferiority_in_the_readme() -> None:
    table = pd.read_csv(ROOT / "docs" / "studies" / "scorecard" / "non_inferiority.csv")
    reached = table["reached"].str.extract(r"(\d+) of (\d+)").astype(int)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for margin, own in table.groupby("margin"):
        alone = own[own["lag_asked"] == 0].iloc[0]
        cells = (f"{margin:.2f}", 0, alone["reached"], f"{alone['updates']:.0f}", f"{alone['samples']:.0f}")
        assert f"| {' | '.join(map(str, cells))} |\n" in readme
        lagged = reached[(table["margin"] == margin) & (table["lag_asked"] > 0)].sum()
        lags = own.loc[own["lag_asked"] > 0, "lag_asked"]
        assert f"| {margin:.2f} | {lags.min()} to {lags.max()} | {lagged[0]} of {lagged[1]} | | |\n" in readme

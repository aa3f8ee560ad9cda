"""Every number of the findings that the scorecard gives is recomputed from its table of verdicts."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from page_prose import STUDIES, prose
from scorecard.fact import VERDICTS

ROOT = Path(__file__).parents[2]
SCORECARD = STUDIES / "scorecard"
VERDICT_TABLE = pd.read_csv(SCORECARD / "verdicts.csv")
FINDINGS = " ".join((ROOT / "docs" / "findings.md").read_text().split())


def counts_in_words(verdicts: "pd.Series[str]") -> str:
    """How many facts have which verdict, as the page says it; one verdict per fact."""
    counts = verdicts.value_counts().reindex(list(VERDICTS), fill_value=0)
    silent = ("not run", "cannot be tested here")
    words = [f"{count or 'none'} {verdict}" for verdict, count in counts.items() if count or verdict not in silent]
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
    assert said == "1 are reproduced, 2 refuted and none undecided"


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


def test_the_table_of_the_speed_up_in_the_readme() -> None:
    table = pd.read_csv(SCORECARD / "profile.csv")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lags = sorted(table["lag_asked"].unique())
    assert f"| share of the gain | {' | '.join(f'lag {lag}' for lag in lags)} |\n" in readme
    for share, own in table.groupby("share"):
        assert f"| {share:.0%} | {' | '.join(arrival(row) for row in own.to_dict('records'))} |\n" in readme
    assert (table.groupby("share")["lag_asked"].apply(list).map(sorted) == [lags] * 5).all()


def arrival(row: dict[str, Any]) -> str:
    """When runs arrive, as the README prints it: updates and the ratio, or how many of them arrive."""
    arrived, total = row["reached"].split(" of ")
    if arrived != total:
        return f"{row['reached']} arrive"
    ratio = f" ({row['sooner']:.2f} [{row['low']:.2f}, {row['high']:.2f}])" if row["lag_asked"] else ""
    return f"{row['updates']:.0f}{ratio}"


def test_which_reproduced_facts_were_open() -> None:
    facts = VERDICT_TABLE.groupby("fact")["fact_verdict"].first()
    found = facts.index[facts == "reproduced"].tolist()
    assert f"None of the three reproduced facts ({', '.join(map(str, found))}) was an open question" in FINDINGS
    assert "the verdicts of 10 and 25 were known when their rules were written" in FINDINGS
    registered = prose(SCORECARD / "registration.md")
    assert "Facts 10 to 14 and 25" in registered or "facts 10 to 14 and 25" in registered


def test_failures_of_fact_1_before_the_lag() -> None:
    runs = pd.read_csv(SCORECARD / "runs.csv").query("staleness == 16 and onset == onset")
    at = {("walk", 8e-4), ("chain", 1.6e-3)}
    runs = runs[[place in at for place in zip(runs["task"], runs["lr"], strict=True)]]
    fell = {place: own["onset"] for place, own in runs.groupby(["task", "method"])}
    tis, reinforce = fell["chain", "tis"], fell["chain", "reinforce"]
    perhaps = ((tis >= 16) & (tis - 10 < 16)).sum()
    assert not (tis < 16).any()
    assert (len(tis), len(reinforce), (reinforce < 16).sum()) == (8, 8, 8)
    assert (
        f"On `chain` {perhaps} of the 8 failures of TIS were found at update {tis.min():.0f} and may have" in FINDINGS
    )
    assert "All 8 of REINFORCE were found before it there." in FINDINGS
    assert (fell["walk", "tis"] >= 26).all()
    assert ((fell["walk", "reinforce"] >= 16) & (fell["walk", "reinforce"] < 26)).all()
    assert "On `walk` none of TIS began before it, and all 8 of REINFORCE may have." in FINDINGS


def test_what_is_added_on_caps_and_batches() -> None:
    figures = PARTS["figure"]
    (bare,) = set(re.findall(r"`tis\(cap=1000000000\)` (\d+)", figures[(8, "cap 8 in the top 2")]))
    assert f"of 300 updates on average, and {bare} without a cap" in FINDINGS
    page = prose(SCORECARD / "README.md")
    ends = re.findall(r"and end at ([\d., ]+), ([\d.]+) and ([\d.]+); the start policy has ([\d.]+)\.", page)[0]
    said = f"They end at {ends[0]} and {ends[1]}, and at {ends[2]} without a cap, TIS per token at"
    token = re.findall(r"\| `token-tis` \|(?:[^|]*\|){3} ([\d.]+) \|", page)[0]
    assert f"{said} {token}; the start policy has {ends[3]}." in FINDINGS
    gap = re.findall(r"A cap of 8 minus one of 32: (\S+ \[[^]]+\]) updates", page)[0]
    assert f"Caps 8 and 32 are not told apart ({gap} updates)." in FINDINGS
    batches = figures[(9, "token-tis fails at every batch")]
    own, total, other = re.findall(r"`token-tis` ([\d, ]+), in all (\d+ of \d+) runs; `tis` (\d+, \d+, \d+)", batches)[
        0
    ]
    assert f"TIS per token fails in {total} runs, where it is said to fail at every batch**" in FINDINGS
    (a, b, c), (d, e, f) = other.split(", "), own.split(", ")
    assert f"Sequence TIS fails in {a}, {b} and {c} of 8 runs, TIS per token in {d}, {e} and {f}." in FINDINGS


def test_where_failed_runs_recover() -> None:
    fates = pd.read_csv(STUDIES / "boundary" / "fates.csv").set_index(["counts_as", "event"])["runs"]["failed"]
    main = pd.read_csv(STUDIES / "boundary" / "runs.csv").query("stage == 'main' and failed")
    main = main.assign(back=main["event"] == "collapse with rebound")
    counting = f"({fates['collapse with rebound']} of {fates.sum()} in the configurations that count there)"
    said = f"{main['back'].sum()} of {len(main)} in the boundary study {counting}"
    acting = pd.read_csv(STUDIES / "acting" / "treatments.csv").query("parents == 'risky' and treatment == 'no act'")
    failed, down = acting["failed"].sum(), acting["down"].sum()
    assert f"{said} and {failed - down:g} of {failed:g} untouched runs of REINFORCE in the acting study." in FINDINGS
    tis = main[main["method"] == "tis"].groupby(["task", "staleness"])["back"].agg(["sum", "count"])
    near, far, chain = ("{} of {}".format(*tis.loc[place]) for place in (("walk", 16), ("walk", 64), ("chain", 16)))
    told = f"in the boundary study {near} on `walk` at lag 16, {far} there at lag 64, and {chain} on `chain` at lag 16."
    assert told in FINDINGS


def test_how_far_above_the_boundary_the_learning_rates_of_fact_6_are() -> None:
    levels = pd.read_csv(STUDIES / "phase" / "levels.csv").query("staleness == 16").set_index(["task", "method"])
    rates = {"walk": 8e-4, "chain": 1.6e-3}
    ratios = [rates[task] / levels.loc[(task, name), "largest_rate"] for task in rates for name in ("tis", "reinforce")]
    said = f"These learning rates are {min(ratios):.1f} to {max(ratios):.1f} times the largest that survives at lag 16."
    assert said in FINDINGS

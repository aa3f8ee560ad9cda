"""Every number of the findings is recomputed from a table that ships, and the README's are a selection of them."""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from scipy import stats

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "docs" / "studies"
TASKS = ("walk", "walk-eos")
PAGE = (ROOT / "docs" / "findings.md").read_text()
TEXT = (ROOT / "README.md").read_text()
README = " ".join(TEXT.split())
FINDINGS = " ".join(PAGE.split())
SCORES = pd.read_csv(STUDIES / "protocol" / "tables" / "scores.csv")


def test_the_readme_has_a_selection() -> None:
    selected = TEXT.split("## What came out so far\n")[1].split("\n## ")[0].replace("](docs/", "](")
    parts = [part for part in re.split(r"\n\n|\n(?=- )", selected) if part.startswith(("- **", "**"))]
    own = ("**More.**", "**In short.**")
    assert len(parts) > 10
    assert [part for part in parts if part not in PAGE and not part.startswith(own)] == []


def mean_score(task: str, method: str, lag: int) -> str:
    """Mean final reward over seeds at learning rate 3e-4, as the page prints it."""
    own = SCORES[(SCORES["task"] == task) & (SCORES["method"] == method) & (SCORES["staleness"] == lag)]
    own = own[own["lr"] == 3e-4]
    assert len(own) >= 4
    return f"{own['score'].mean():.2f}"


def test_the_size_of_the_study() -> None:
    named = SCORES[SCORES["method"].isin(["vcpo", "vespo", "gspo", "clip", "tis", "reinforce"])]
    assert f"{len(named)} runs, two tasks, lags 1, 16 and 64, two learning rates, 6 seeds" in FINDINGS
    assert named["task"].nunique() == named["lr"].nunique() == 2
    assert named["seed"].nunique() == 6
    assert set(named["staleness"]) == {0, 1, 16, 64}


def paired(task: str, lag: int, first: str, second: str) -> tuple[float, float, float]:
    """Mean difference of final reward, first minus second, at learning rate 3e-4, paired by seed; its t interval."""
    at = SCORES[(SCORES["task"] == task) & (SCORES["staleness"] == lag) & (SCORES["lr"] == 3e-4)]
    wide = at.pivot_table(index="seed", columns="method", values="score")
    found = (wide[first] - wide[second]).dropna()
    assert len(found) == (4 if "(ess=off)" in first + second else 6)
    half = float(stats.t.ppf(0.975, len(found) - 1) * found.std() / len(found) ** 0.5)
    return float(found.mean()), float(found.mean()) - half, float(found.mean()) + half


def shown(numbers: Iterable[float], form: str = "") -> str:
    """An estimate with its interval, as the page prints it."""
    value, low, high = (f"{number:{form}.3f}" for number in numbers)
    return f"{value} [{low.removeprefix('+')}, {high.removeprefix('+')}]"


def test_final_rewards() -> None:
    chain = [mean_score("chain", name, 64) for name in ("vcpo", "vespo", "tis")]
    vespo, tis = (shown(paired("chain", 64, "vcpo", other)) for other in ("vespo", "tis"))
    assert f"on `chain`: {chain[0]}, against {chain[1]} for VESPO (difference {vespo})" in FINDINGS
    assert f"and {chain[2]} for TIS ({tis}, not told apart)" in FINDINGS
    walk = [mean_score("walk", name, 64) for name in ("vcpo", "tis")]
    assert f"{walk[0]} against {walk[1]} ({shown(paired('walk', 64, 'vcpo', 'tis'))})" in FINDINGS
    lag_1 = [mean_score("chain", name, 1) for name in ("vcpo", "tis")]
    assert f"at lag 1 ({lag_1[0]}, TIS {lag_1[1]}; {shown(paired('chain', 1, 'vcpo', 'tis'))})" in FINDINGS


def test_vcpo_leads_on_chain_and_loses_on_walk() -> None:
    at = SCORES[(SCORES["staleness"] == 64) & (SCORES["lr"] == 3e-4)]
    means = at.groupby(["task", "method"])["score"].mean()
    compared = ["vcpo", "vespo", "gspo", "clip", "tis", "reinforce"]
    assert means["chain"][compared].idxmax() == "vcpo"
    assert means["walk"]["vcpo"] < means["walk"]["tis"]


def test_which_half_of_vcpo_matters() -> None:
    assert "the reward stays within 0.005 at lags 16 and 64 (both intervals, 4 seeds)" in FINDINGS
    for lag in (16, 64):
        _, low, high = paired("chain", lag, "vcpo", "vcpo(ess=off)")
        assert -0.005 < low < high < 0.005
    harm, repair = paired("walk", 64, "vcpo(ess=off)", "tis"), paired("walk", 64, "vcpo", "vcpo(ess=off)")
    assert f"is below TIS ({shown(harm)}), and ESS scaling wins back {shown(repair)} (4 seeds)" in FINDINGS


def test_failures_of_reinforce() -> None:
    own = SCORES[SCORES["method"] == "reinforce"].groupby(["task", "staleness"])["failed"].agg(["sum", "count"])
    counts = {cell: f"{row['sum']} of {row['count']}" for cell, row in own.iterrows()}
    assert f"at lag 16 in {counts['chain', 16]} runs on `chain` and {counts['walk', 16]} on `walk`" in FINDINGS
    assert counts["chain", 64] == counts["walk", 64]
    assert f"at lag 64 in {counts['walk', 64]} on either" in FINDINGS


def test_prediction() -> None:
    tables = STUDIES / "prediction" / "tables"
    auroc = pd.read_csv(tables / "auroc.csv").set_index(["signal", "lead"])["value"]
    nulls = pd.read_csv(tables / "nulls.csv").set_index(["signal", "null"])
    runs = pd.read_csv(tables / "runs.csv")["started"].sum()
    assert f"AUROC {auroc['ess', 20]:.2f}, over {runs} runs with a third learning rate" in FINDINGS
    rivals = f"So do KL ({auroc['kl', 20]:.2f}) and the training reward itself ({auroc['reward_low', 20]:.2f})."
    assert rivals in FINDINGS
    failed = pd.read_csv(tables / "placements.csv").groupby(["task", "method", "staleness", "lr"]).ngroups
    assert f"The failing runs are of {failed} configurations only" in FINDINGS
    assert nulls.loc[("ess", "permuted within configuration"), "p"] > 0.5  # knowing the configuration does as well
    assert "most of that skill is recognizing the configuration" in FINDINGS


def test_step_rules() -> None:
    folder = STUDIES / "step-rules"
    runs = pd.read_csv(folder / "runs.csv")
    sizes = f"{len(runs)} runs of TIS at lag 16, registered beforehand: two tasks, {runs['seed'].nunique()} seeds"
    assert sizes in FINDINGS
    assert set(runs.groupby(["method", "task"])["lr"].nunique()) == {6}
    contrasts = pd.read_csv(folder / "contrasts.csv").set_index(["against", "task"])
    assert f"Seeds 0 to 4 choose the learning rate of each rule; the other {contrasts['seeds'].max()} judge" in FINDINGS
    told = {"tis": "{} and {} are equivalent as well", "tis+gap-aware": "is {} on `walk` and {} on `walk-eos`"}
    for other, sentence in told.items():
        own = contrasts.loc[other]
        assert set(own["verdict"]) == {"equivalent"}
        assert (
            sentence.format(*(shown(own.loc[task, ["difference", "low", "high"]], "+") for task in TASKS)) in FINDINGS
        )
    primary = contrasts[contrasts["primary"] == "yes"]
    assert set(primary["verdict"]) == {"equivalent"}
    assert f"it does in 0 of {len(primary)} primary comparisons, all of which are equivalent" in FINDINGS
    rules = pd.read_csv(folder / "rules.csv").set_index(["task", "rule"])
    gains = (rules["reward"] - rules["start"]).map("{:.2f}".format)
    assert f"TIS gains {gains['walk', 'tis']} there and ESS scaling {gains['walk', 'tis+ess']}." in FINDINGS
    assert f"they gain {gains['walk-eos', 'tis']} and {gains['walk-eos', 'tis+ess']}." in FINDINGS


def test_the_comparison_with_a_rule_that_hardly_acts() -> None:
    """`length-surge` on `walk-eos`, at the learning rate that was chosen for it."""
    name = "tis+length-surge(factor=1.25,window=20)"
    runs = pd.read_csv(STUDIES / "step-rules" / "runs.csv").query("task == 'walk-eos' and lr == 2e-4")
    rules = pd.read_csv(STUDIES / "step-rules" / "rules.csv").set_index(["task", "rule"])
    assert rules.loc[("walk-eos", name), "rate"] == 2e-4
    wide = runs.pivot(index="seed", columns="method", values="final_reward")
    moved = (wide[name] != wide["tis"]).sum()
    assert f"at its learning rate, `length-surge` changes the final reward of {moved} of {len(wide)} runs." in FINDINGS


def test_the_rule_that_looks_at_the_kl_against_that_of_the_ess() -> None:
    runs = pd.read_csv(STUDIES / "step-rules" / "runs.csv").query("lr == 8e-4 and seed >= 5")
    said = []
    for task in TASKS:
        wide = runs[runs["task"] == task].pivot(index="seed", columns="method", values="final_reward")
        found = wide["tis+kl-adaptive"] - wide["tis+ess"]
        half = float(stats.t.ppf(0.975, len(found) - 1) * found.std() / len(found) ** 0.5)
        said.append(f"{found.mean():.2f} [{found.mean() - half:.2f}, {found.mean() + half:.2f}]")
    told = f"ends {said[0]} above ESS scaling on `walk` and {said[1]} on `walk-eos` (not registered)."
    assert told in FINDINGS


def test_sixteen_seeds() -> None:
    folder = STUDIES / "sixteen-seeds"
    runs = pd.read_csv(folder / "runs.csv")
    (rate,) = set(runs["lr"])
    sizes = f"{len(runs)} runs on `walk` at {rate:.0e}".replace("e-0", "e-")
    assert f"{sizes} with {runs['seed'].nunique()} seeds" in FINDINGS
    contrasts = pd.read_csv(folder / "contrasts.csv").set_index("contrast")
    assert set(contrasts["verdict"]) == {"equivalent"}
    mean, order, clip = (
        shown(contrasts.loc[name, ["difference", "low", "high"]])
        for name in ("vcpo - vcpo(ess=off)+lr-matched", "vcpo - vcpo(ess=off)+lr-shuffled", "clip+ess - clip")
    )
    assert f"VCPO minus that is {mean}, and minus its own steps in random order {order}; both" in FINDINGS
    holm = contrasts.loc["clip+ess - clip", "p_holm"]
    assert f"At lag 16 `clip+ess` ends {clip} above `clip`: p is {holm:.2f} after Holm's adjustment" in FINDINGS
    assert not runs["failed"].any(), "No run of the study fails"
    asked = contrasts["lag_asked"].to_dict()
    assert (asked["vcpo - vcpo(ess=off)+lr-matched"], asked["clip+ess - clip"]) == (64, 16)


def test_no_best_rate_of_the_rules_that_are_named_is_at_an_edge() -> None:
    rules = pd.read_csv(STUDIES / "step-rules" / "rules.csv").set_index("rule")
    assert rules.loc[["tis", "tis+ess", "tis+gap-aware"], "at_edge"].isna().all()


def test_a_learning_rate_that_is_too_high() -> None:
    folder = STUDIES / "step-rules"
    rules = pd.read_csv(folder / "rules.csv").set_index("rule")
    assert set(rules.loc["tis", "rate"]) == {2e-4}
    high = pd.read_csv(folder / "too_high.csv").set_index(["rule", "task"])
    assert set(high["verdict"]) == {"higher"}
    ess, kl = (
        [shown(high.loc[(rule, task), ["difference", "low", "high"]]) for task in TASKS]
        for rule in ("tis+ess", "tis+kl-adaptive")
    )
    assert f"ends above plain TIS by {ess[0]} on `walk` and {ess[1]} on `walk-eos`" in FINDINGS
    assert f"TIS with `kl-adaptive` by {kl[0]} and {kl[1]}." in FINDINGS
    rewards = high["reward"].map("{:.2f}".format)
    ends = [f"{rewards[rule, 'walk']} and {rewards[rule, 'walk-eos']}" for rule in ("tis+ess", "tis+kl-adaptive")]
    starts = " and ".join(f"{high.loc[('tis+ess', task), 'start']:.2f}" for task in TASKS)
    assert f"{ends[0]} with ESS scaling and {ends[1]} with `kl-adaptive`, from {starts} at the start." in FINDINGS
    runs = pd.read_csv(folder / "runs.csv").query(
        "seed >= 5 and lr == 8e-4 and method in ('tis+ess', 'tis+kl-adaptive')"
    )
    assert not runs["failed"].any()
    assert rules.loc["tis+gap-aware", "rate"].min() > 8e-4
    assert rules.loc["tis+gap-aware", "step_scale"].max() < 0.1


def test_time_to_target() -> None:
    figures = pd.read_csv(STUDIES / "scorecard" / "verdicts.csv").set_index(["fact", "part"])["figure"]
    means = re.findall(r"(\d+) at k = (\d+)", figures[2, "slower with k"])
    assert [lag for _, lag in means] == ["0", "16", "32", "64", "128"]
    assert {mean for mean, lag in means if lag != "0"} == {"500"}, "a mean of 500 of 500: no run arrives earlier"
    assert f"90% of that gain takes {means[0][0]} updates; no run at lags 16 to 128" in " ".join(FINDINGS.split())


def test_which_failed_runs_come_back() -> None:
    figures = pd.read_csv(STUDIES / "scorecard" / "verdicts.csv").set_index(["fact", "part"])["figure"]
    assert all("by update 600: 0 of 16" in figures[6, task] for task in ("walk", "chain"))
    assert "0 of 16 on `walk` at 8e-4 and 0 of 16 on `chain` at 1.6e-3, by update 600" in FINDINGS
    failed = pd.read_csv(STUDIES / "phase" / "runs.csv").query("failed and staleness > 0")
    back = (failed["event"] == "collapse with rebound").groupby(failed["task"]).agg(["sum", "count"])
    walk, chain = ("{} of the {}".format(*back.loc[task]) for task in ("walk", "chain"))
    assert f"{walk} failed runs on `walk` and {chain} on `chain`, lag 0 left out, [recover]" in " ".join(
        FINDINGS.split()
    )


def test_how_many_methods_trl_refuses() -> None:
    rows = re.findall(r"^\| `(.+?)` .*\| (exact|refused)[^|]*\|$", (ROOT / "docs" / "trl.md").read_text(), flags=re.M)
    refused = [f"`{name}`" for name, state in rows if state == "refused"]
    assert f"exact for {len(rows) - len(refused)} of the {len(rows)} methods and parts" in README
    assert f"Refused are {', '.join(refused[:-1])} and {refused[-1]}." in README


def test_four_tools_on_the_same_logs() -> None:
    table = pd.read_csv(STUDIES / "diagnose" / "speaks.csv")
    recorded = table[table["runs"] == "recorded"]
    recorded = recorded.set_index(recorded["tool"].str.split(",").str[0])
    assert recorded.index.tolist() == ["vcpo-bench", "rldoctor", "rlwatch", "rlprobe"]
    for tool, row in recorded.iterrows():
        name = "`diagnose`" if tool == "vcpo-bench" else tool
        counts = f"{row['broken_spoken']} of {row['broken']} | {row['healthy_spoken']} of {row['healthy']}"
        assert f"| {name} | {counts} |" in README
        assert f"the same {row['broken'] + row['healthy']} logs" in README

"""What the findings say of the phase study is recomputed from its tables, task by task."""

import math
import re
from itertools import pairwise

import pandas as pd
import pytest
import yaml
from page_prose import STUDIES, ends, number
from phase_study import boundary, contrasts, tables
from phase_study.contrasts import RATE_MARGIN, REWARD_MARGIN
from phase_study.design import LADDER, LAGS, METHODS, STEPS, TASKS
from phase_study.tables import HORIZON_LAG, HORIZONS, boundaries

from vcpo_bench.analysis.wording import with_interval

PHASE = STUDIES / "phase"
PAGE = (STUDIES.parent / "findings.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split("**The phase law.**")[1].split("\n**")[0].split())
STUDY_LINES = (PHASE / "README.md").read_text(encoding="utf-8")
STUDY = " ".join(STUDY_LINES.split())
EXPONENTS = pd.read_csv(PHASE / "exponents.csv").set_index(["lag", "task", "method"]).sort_index()
RUNS = pd.read_csv(PHASE / "runs.csv")


def exponent(lag: str, task: str, method: str) -> str:
    """An exponent of 1 / lag with its interval, as the page prints it."""
    row = EXPONENTS.loc[(lag, task, method)]
    return f"{number(row['exponent'])} {ends(row['low'], row['high'])}"


def test_the_size_of_the_study() -> None:
    said = "{} runs, registered beforehand: for nine methods, 8 seeds and requested lags 4, 16 and 64,"
    assert said.format(len(RUNS)) in TEXT
    assert (RUNS["seed"].nunique(), RUNS["method"].nunique(), len(METHODS)) == (8, 9, 9)
    assert set(RUNS["staleness"]) == {0, *LAGS}
    assert LAGS == (4, 16, 64)
    assert f"that survives {STEPS} updates" in TEXT


def test_who_fell_before_the_lag() -> None:
    failures = pd.read_csv(PHASE / "failures.csv")
    lagged = RUNS[RUNS["staleness"] > 0]
    assert failures["failed"].sum() == lagged["failed"].sum()
    early = (lagged["failed"] & (lagged["onset"] < lagged["staleness"])).sum()
    assert early == failures["before_the_lag"].sum()
    said = (
        "{} of the {} failures at these lags came before the requested lag was reached, {} more may have begun before"
    )
    counts = failures[["perhaps_before", "twins"]].sum()
    assert said.format(early, failures["failed"].sum(), counts["perhaps_before"]) in TEXT
    assert f"before it, and {counts['twins']} repeat a fall that was counted at another lag already." in TEXT


def test_the_exponents() -> None:
    said = [exponent("asked", task, method) for method in ("reinforce", "tis", "clip", "vcpo") for task in TASKS]
    sentence = (
        "The exponent of 1 / lag is {} on `walk` and {} on `chain` for REINFORCE; {} and {} for TIS; {} and {} for "
        "`clip`; {} and {} for VCPO."
    )
    asked = EXPONENTS.loc["asked"]
    low = f"{asked.loc[('chain', 'vcpo'), 'low']:.3f}"  # 0.00 would not show on which side of 0 it lies
    assert low.startswith("-0.00")
    assert said[-1].count("[0.00,") == 1
    said[-1] = said[-1].replace("[0.00,", f"[{low},")
    assert sentence.format(*said) in TEXT
    assert "holds within the registered 0.75 to 1.25 for REINFORCE on both tasks." in TEXT
    assert set(asked.loc[[("chain", "reinforce"), ("walk", "reinforce")], "verdict"]) == {"holds"}
    walk = asked.loc[("walk", "reinforce")]
    assert walk["high"] < 1
    assert f"the interval begins at {walk['low']:.3f} and leaves out 1" in TEXT
    corrected = asked.drop("reinforce", level="method")
    assert len(corrected) == 2 * 8
    beyond = corrected["exponent"].isna()
    assert list(beyond.index[beyond]) == [("chain", "gspo(high=0.04,low=0.03)")]
    assert "In the 15 cases of 16 (eight methods with a correction, two tasks) that have an interval" in TEXT
    assert (corrected["high"][~beyond] < 0.75).all()
    assert set(corrected["verdict"][~beyond]) == {"refuted"}


def test_intervals_of_whole_seeds_change_one_verdict() -> None:
    known = EXPONENTS.dropna(subset=["exponent"]).loc["asked"]
    again = known.apply(lambda row: tables._law(row["seeds_low"], row["seeds_high"]), axis=1)
    other = known[again != known["verdict"]]
    assert other.index.tolist() == [("walk", "reinforce")]
    begins = f"that of REINFORCE on `walk` begins at {other['seeds_low'].item():.3f}, which is undecided."
    assert f"change one verdict on the requested lag: {begins}" in TEXT
    assert again[("walk", "reinforce")] == "undecided"


def test_which_verdicts_moved_when_runs_were_made_again() -> None:
    moved = re.findall(r"^\| (rates|exponents|same_rate|rewards) \| (\w+),", STUDY_LINES, flags=re.MULTILINE)
    assert "no verdict on learning rates moved, and five on rewards did, all on `walk`." in TEXT
    assert [table for table, _ in moved] == ["same_rate", "rewards", "rewards", "rewards", "rewards"]
    assert {task for _, task in moved} == {"walk"}
    runs, rates, fates = re.findall(
        r"(\d+) runs instead of \d+, (\d+) of them at the same rate; of these (\d+) met", STUDY
    )[0]
    changes = " ".join((STUDIES.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").split())
    assert f"{rates} of {runs} are at rates that ran before, and {fates} of these met the same fate." in changes


def test_failures_before_the_largest_lag() -> None:
    failed = RUNS[(RUNS["staleness"] == max(LAGS)) & (RUNS["method"] != "reinforce") & RUNS["failed"]]
    early = (failed["onset"] < failed["staleness"]).sum()
    said = (
        f"At lag {max(LAGS)}, {early} of the {len(failed)} failures of methods with a correction came before that lag"
    )
    assert said in TEXT


def test_boundaries_beyond_the_ladder() -> None:
    levels = pd.read_csv(PHASE / "levels.csv").query("task == 'chain' and staleness > 0").set_index("method")
    gspo = levels.loc["gspo(high=0.04,low=0.03)"]
    said = "because {} of its {} boundaries lie above the largest learning rate tried."
    assert said.format(gspo["at_top"].sum(), gspo["seeds"].sum()) in TEXT
    under = levels.loc["reinforce"].set_index("staleness").loc[64]
    said = "On `chain` {} of the {} boundaries at lag 64 lie below the smallest learning rate tried"
    assert said.format(int(under["at_bottom"]), int(under["seeds"])) in TEXT


def test_who_was_seen_before() -> None:
    """The earlier pages are in the history; the registration says what they said."""
    assert "held with four seeds, was undecided with six and holds with eight" in TEXT
    registered = " ".join((PHASE / "registration.md").read_text(encoding="utf-8").split())
    assert "the law held for `reinforce` on `walk` with four seeds and was undecided with six." in registered


def test_the_exponents_of_the_lag_that_was_reached() -> None:
    vcpo, clip = (exponent("reached", "chain", method) for method in ("vcpo", "clip"))
    said = "fell no verdict changes, but VCPO on `chain` has {}, which leaves out 0, and `clip` there {}."
    assert said.format(vcpo, clip) in TEXT
    assert EXPONENTS.loc[("reached", "chain", "vcpo"), "low"].item() > 0
    assert (EXPONENTS.loc["asked"]["verdict"] == EXPONENTS.loc["reached"]["verdict"]).all()


def test_the_exponents_of_the_horizon() -> None:
    known = pd.read_csv(PHASE / "horizons.csv").dropna().set_index(["task", "method"])
    seeds, zero = known["seeds"].unique().tolist(), (known["low"] == 0).sum()
    assert (
        f"None of the {len(known)} intervals, made by resampling {seeds[0]} seeds, reaches 1, and {zero} begin" in TEXT
    )
    assert seeds == [8]
    assert (known["high"] < 1).all()
    rows = [known.loc[(task, method)] for method in ("reinforce", "vcpo") for task in TASKS]
    said = [with_interval(row["exponent"], row["low"], row["high"]) for row in rows]
    sentence = "lag {} the exponent is {} on `walk` and {} on `chain` for REINFORCE, {} and {} for VCPO."
    assert sentence.format(HORIZON_LAG, *said) in TEXT
    assert f"From {HORIZONS[0]} to {HORIZONS[-1]} updates" in TEXT
    assert math.log2(HORIZONS[-1] / HORIZONS[0]) * 0.5 == 1, "an exponent of 0.5 moves a boundary by one rate"


def test_facts_of_the_scorecard_agree() -> None:
    parts = pd.read_csv(STUDIES / "scorecard" / "verdicts.csv").query("fact == 23")
    lag = parts[parts["part"].str.startswith("1 / lag")].set_index("part")["verdict"]
    assert "reproduced for it, refuted for TIS and `clip`." in " ".join(PAGE.split())
    own = lag.index.str.contains("reinforce")
    assert own.sum() == 2
    assert set(lag[own]) == {"reproduced"}
    assert set(lag[~own]) == {"refuted"}


def test_vcpo_against_smaller_steps() -> None:
    rates = pd.read_csv(PHASE / "rates.csv")
    assert len(rates) == 6
    more = (rates["task"] == "chain") & (rates["staleness"] == 64)
    assert list(rates["verdict"][more]) == ["more"]
    assert set(rates["verdict"][~more]) == {"undecided"}
    place = 2 ** rates.loc[more, ["difference", "low", "high"]].iloc[0]
    assert "On `chain` at lag 64 it tolerates {:.2f} [{:.2f}, {:.2f}] times the learning rate of".format(*place) in TEXT
    lent = rates[more].iloc[0]
    assert f"in {lent['lender_failed']} of {lent['seeds']} seeds the run whose mean step it took had failed" in TEXT
    failures = pd.read_csv(PHASE / "failures.csv").set_index(["task", "method", "staleness"])
    control = failures.loc[("chain", "vcpo(ess=off)+lr-matched", 64)]
    assert control["failed"] == control["before_the_lag"]
    assert f"All {control['failed']:.0f} failures of that control came before lag 64 was reached" in TEXT
    others = rates[~more]
    ratio = (2 ** others["difference"]).groupby(others["task"])
    low, high = ratio.min(), ratio.max()
    assert f"it is {low['walk']:.1f} to {high['walk']:.1f} times on `walk` and" in TEXT
    assert f"{low['chain']:.1f} to {high['chain']:.1f} times on `chain`." in TEXT
    assert "At the other five (two tasks, three lags) each interval includes 1." in TEXT
    assert ((others["low"] < 0) & (others["high"] > 0)).all()
    assert (rates["reach90"] > 0.5).all(), "equality could have been shown"


def test_vcpo_at_the_same_learning_rate() -> None:
    table = pd.read_csv(PHASE / "same_rate.csv").set_index(["task", "staleness"])
    row, others = table.loc[("walk", 16)], table.drop(("walk", 16))
    gap = f"{row['difference']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    assert f"VCPO ends {gap} higher on `walk` at lag 16 and is not shown to at the other five" in TEXT
    assert row["verdict"] == "more"
    assert "| same_rate | walk, 16 | 0.00 [-0.05, 0.06] undecided |" in STUDY
    assert "Before seeds 0 to 3 were made again it was 0.00 [-0.05, 0.06]: take it for undecided." in TEXT
    assert len(others) == 5
    assert set(others["verdict"]) <= {"undecided", "equivalent"}


def test_a_correction_for_six_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "shown in one place of six, and not after a correction for six.**" in TEXT
    shipped = pd.read_csv(PHASE / "rates.csv")
    drop, count = boundary._drop, len(shipped)
    whole = [contrasts.rates(RUNS, boundaries(RUNS))]
    monkeypatch.setattr(boundary, "_drop", lambda values, free, level: drop(values, free, 1 - (1 - level) / count))
    whole.append(contrasts.rates(RUNS, boundaries(RUNS)))
    assert [(own["verdict"] == "more").sum() for own in whole] == [1, 0]


@pytest.mark.parametrize(
    ("against", "sentence", "verdicts"),
    [
        (
            "tis",
            "VCPO ends below TIS at lag 64 on `walk`, lags 4 and 16 are undecided there; on `chain` it ends below it "
            "at lag 4 and above it at lag 64, and lag 16 is undecided.",
            {"walk": ["undecided", "undecided", "less"], "chain": ["less", "undecided", "more"]},
        ),
        (
            "vcpo(ess=off)",
            "it is never above by the margin of 0.05: on `walk` undecided at lags 4 and 16 and below at lag 64, on "
            "`chain` below at lag 4, undecided at lag 16 and, at lag 64, 0.01 above, which is equivalent.",
            {"walk": ["undecided", "undecided", "less"], "chain": ["less", "undecided", "equivalent"]},
        ),
    ],
)
def test_what_vcpo_earns(against: str, sentence: str, verdicts: dict[str, list[str]]) -> None:
    assert sentence in TEXT
    own = pd.read_csv(PHASE / "rewards.csv").query("against == @against").sort_values("staleness")
    assert {task: list(rows["verdict"]) for task, rows in own.groupby("task")} == verdicts


def test_how_little_vcpo_is_above_its_baseline() -> None:
    rewards = pd.read_csv(PHASE / "rewards.csv").set_index(["against", "task", "staleness"])["difference"]
    assert f"{rewards['vcpo(ess=off)', 'chain', 64]:.2f}" == "0.01"


def test_what_the_page_of_the_study_says_by_hand() -> None:
    assert f"was searched on nine rates, {LADDER[0]:.1e} to {LADDER[-1]:.1e}".replace("e-0", "e-") in STUDY
    assert len(LADDER) == 9
    assert {round(high / low, 6) for low, high in pairwise(LADDER)} == {2.0}
    assert "each twice the one before" in STUDY
    assert set(RUNS["lr"].round(10)) <= {round(rate, 10) for rate in LADDER}


def test_what_is_left_to_the_preset() -> None:
    preset = yaml.safe_load((STUDIES.parents[1] / "configs" / "phase.yaml").read_text(encoding="utf-8"))
    sizes = [len(re.split(r",(?![^(]*\))", preset[name])) for name in ("methods", "staleness", "task", "lr")]
    assert f"(`vcpo-bench run --config phase`, {math.prod(sizes) * preset['seeds']:,} cells)" in STUDY
    assert f"`walk-eos`, {preset['seeds']} seeds at the boundary and `+lr-shuffled` are left to the preset" in STUDY
    whole = f"({math.prod(sizes) * preset['seeds']:,} runs, many hours of calls)"
    assert whole in (STUDIES.parent / "gpu.md").read_text(encoding="utf-8")
    assert [float(rate) for rate in preset["lr"].split(",")] == pytest.approx(LADDER)
    assert "walk-eos" in preset["task"]
    assert "+lr-shuffled" in preset["methods"]


def test_margins_and_least_numbers_of_the_page() -> None:
    assert f"the 90% interval lies within +-{RATE_MARGIN}" in STUDY
    assert f"fewer than {contrasts.LEAST_PAIRS} pairs that say anything give no verdict" in STUDY
    assert STUDY.count(f"margin {REWARD_MARGIN}") == 2
    assert f"Intervals by resampling seeds, from {boundary.LEAST_SEEDS} seeds on." in STUDY
    assert f"failures by update {HORIZONS[0]}, {HORIZONS[1]} and {HORIZONS[2]}" in STUDY
    assert f"At lag {HORIZON_LAG}, with failures" in STUDY


def test_the_second_wave() -> None:
    answers = pd.read_csv(PHASE / "second" / "answers.csv", keep_default_na=False, na_values=[""])
    law = answers[answers["question"] == "law"]
    same = int((law["first_word"] == law["second_word"]).sum())
    assert f"give the same word on the law in {same} of {len(law)} places" in TEXT
    own = law.set_index(["task", "method"]).loc[("walk", "reinforce")]
    assert (own["second_word"], own["both_word"]) == ("undecided", "holds")
    second, both = (f"{own[wave]:.2f} {ends(own[f'{wave}_low'], own[f'{wave}_high'])}" for wave in ("second", "both"))
    assert f"the exponent is {second}: by itself undecided; with all sixteen seeds it is {both}, which holds" in TEXT
    rates = answers[answers["question"] == "rate"].set_index(["task", "staleness"])
    assert rates.index[rates["first_word"] == "more"].tolist() == [("chain", 64)]
    assert not (rates["second_word"] == "more").any()
    there = 2 ** rates.loc[("chain", 64), ["second", "second_low", "second_high"]].astype(float)
    assert f"tolerates {there.iloc[0]:.2f} {ends(there.iloc[1], there.iloc[2])} times the learning rate of its" in TEXT
    assert rates.index[rates["both_word"] == "equivalent"].tolist() == [("walk", 4), ("walk", 16)]
    more = rates[rates["both_word"] == "more"]
    assert more.index.tolist() == [("chain", 4), ("walk", 64)]
    assert {f"{2**value:.2f}" for value in more["both"]} == {"1.23"}

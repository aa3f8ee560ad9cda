"""The registration of the acting study says what its code does."""

import math
from pathlib import Path

import pytest
from acting_study import cells, design, page, tables, verdicts
from acting_study.design import STEPS, WAVES, Parent
from short_studies.contrasts import MARGIN

from vcpo_bench.analysis.monitoring.stop_on_alarm import stop_default
from vcpo_bench.records import RULES_VERSION

REGISTRATION = tables.FOLDER / "registration.md"
OLD = WAVES[0]


@pytest.mark.parametrize(
    ("path", "seeds", "said"),
    [
        (REGISTRATION, 8, {0.35: 0.083, 0.5: 0.043}),
        (REGISTRATION, 16, {0.35: 0.075, 0.5: 0.033}),
        (page.TEXT, 16, {0.35: 0.075, 0.5: 0.033}),
    ],
)
def test_the_bias_of_the_bar_on_failures_is_the_one_named(path: Path, seeds: int, said: dict[float, float]) -> None:
    text, least = path.read_text(encoding="utf-8"), round(verdicts.LEAST_FAILURES * seeds)
    assert "0.4 of reward between a run that fails and one that does not" in " ".join(text.split())
    for rate, bias in said.items():
        assert f"+{bias}" in text
        weights = [math.comb(seeds, n) * rate**n * (1 - rate) ** (seeds - n) for n in range(seeds + 1)]
        failing = sum(n * weights[n] for n in range(least, seeds + 1)) / sum(weights[least:]) / seeds
        assert 0.4 * (failing - rate) == pytest.approx(bias, abs=0.0005)


def test_the_registration_says_what_the_code_does() -> None:
    text = " ".join(REGISTRATION.read_text(encoding="utf-8").split())
    run, per_parent = (
        STEPS * design.CORE_SECONDS,
        {group: sum(each != design.FOURTH for each in design.PLAN[group]) for group in design.GROUPS},
    )
    branches = len(design.RATES) * len(OLD) * sum(per_parent.values())
    states = len(design.RATES) * len(OLD) * 3
    parents = len(design.parents()) // len(WAVES)
    settings = cells.SETTINGS
    for said in (
        f"> **Rules {RULES_VERSION}**",
        "**Registered before its first run.**",
        f"lag {design.LAG}, regime fifo, {STEPS} updates",
        f"of {settings.prompts} prompts x {settings.responses} responses",
        f"record level {settings.record}",
        f"Seeds {OLD[0]} to {OLD[-1]}",
        f"seeds {WAVES[1][0]} to {WAVES[1][-1]}, with nothing else changed",
        "2e-4 on `walk`, 1e-4 on `chain`. *Calm* ones have a quarter of it: 5e-5 and 2.5e-5.",
        f"{parents} parents",
        f"`{design.DETECTOR}`",
        f"At most {branches} branches",
        f"{len(design.RATES) * len(design.SEEDS)} branches; nothing else is changed",
        f"so {run * parents:.0f} core-seconds for the parents",
        f"at most {run * branches:.0f} for the branches",
        f"at most {states * 50 * design.CORE_SECONDS:.0f} for replaying",
        f"Margin {MARGIN}",
        f"fewer than {verdicts.LEAST_ACTS * 8:g} seeds have two different runs",
        f"fewer than {verdicts.LEAST_FAILURES * 8:g} of {len(OLD)} parents fail",
        f"more than {8 - verdicts.LEAST_HEALTHY * 8:g} of {len(OLD)} fail",
        f"from 1 to min(2m, {STEPS}) - 1",
        f"above m = {STEPS // 2} its mean is smaller",
        f"cut into {len(OLD)} equal strata",
        f"{2 * sum(len(each.pairs) for each in verdicts.SECONDARY)} contrasts, 7 per task",
        f"mean sampled held-out reward of the last {tables.LAST} evaluations",
    ):
        assert said in text, said
    assert [Parent(task, "risky", 0).lr for task in ("walk", "chain")] == [2e-4, 1e-4]
    assert [Parent(task, "calm", 0).lr for task in ("walk", "chain")] == [5e-5, 2.5e-5]
    assert design.SLOWDOWN == 3
    assert stop_default(settings.record).detector.text == design.DETECTOR

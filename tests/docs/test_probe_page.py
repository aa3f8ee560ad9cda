"""The tables of the probe's page are its CSV, and its sentences are its tables."""

import re

import pandas as pd
import pytest
from page_prose import STUDIES, prose

PAGE = STUDIES / "prediction" / "probe.md"
TEXT = prose(PAGE)
ROWS = pd.read_csv(STUDIES / "prediction" / "probe.csv")
ROWS["task"] = ROWS["key"].str.split("-").str[0]
FOUND = ROWS.set_index(["task", "method", "lag", "quantity", "step", "preconditioned"])[["value", "low", "high"]]
FOUND = FOUND.sort_index()
COLUMNS = {
    "variance": ("variance", False),
    "signal/noise": ("snr", False),
    "over `tis`": ("snr_ratio", True),
    "step scale": ("step_scale", False),
    "cosine of the mean": ("cosine_of_mean", True),
    "cosine": ("cosine", True),
    "cosine after the optimizer": ("cosine", True),
    "back to mu": ("cosine_back", True),
}
"""Quantity of each column, and whether its interval is shown."""


def rounded(exact: float) -> set[str]:
    """How the page may show a number: the CSV has four digits of it, the page was made from all."""
    return {f"{exact * scale:.2g}" for scale in (1 - 3e-4, 1, 1 + 3e-4)}


def value(task: str, method: str, quantity: str, step: int) -> str:
    lag = 0 if method in ("truth", "reinforce (lag 0)") else 16
    return f"{FOUND.loc[(task, method.split(' ')[0], lag, quantity, step, False), 'value']:.2g}"


def interval(task: str, method: str, quantity: str, step: int) -> str:
    row = FOUND.loc[(task, method, 16, quantity, step, False)]
    low, high = (f"{row[side]:.2g}" for side in ("low", "high"))
    return f"[{low}, {high}]"


@pytest.mark.parametrize("task", ["chain", "walk"])
def test_every_cell_of_the_tables(task: str) -> None:
    section = PAGE.read_text().split(f"### {task}\n")[1].split("\n### ")[0]
    seen = 0
    for block in section.split("| update of |")[1:]:
        head, _, *rows = block.split("\n\n")[0].splitlines()
        columns = [re.fullmatch(r"(.*), (\d+)", part.strip()) for part in head.strip("|").split("|")]
        for row in rows:
            name, *cells = (part.strip() for part in row.strip("|").split("|"))
            method = {"(the truth itself)": "truth", "`reinforce` (lag 0)": "reinforce"}.get(name, name.strip("`"))
            for column, cell in zip(columns, cells, strict=True):
                assert column
                if cell == "-":
                    continue
                quantity, with_interval = COLUMNS[column[1]]
                lag = 0 if name.startswith("(") or "lag 0" in name else 16
                found = FOUND.loc[(task, method, lag, quantity, int(column[2]), "optimizer" in column[1])]
                shown = re.findall(r"[-+.e\d]+", cell)
                assert len(shown) == (3 if with_interval else 1)
                for one, exact in zip(shown, found, strict=False):
                    assert one in rounded(exact), (name, column[0])
                seen += 1
    assert seen > 350


OPOB, ESS = "vcpo(ess=off)", "vcpo(baseline=group)"
RELEASED, OTHERS = "tis+opob(weight=released)", "tis+opob(others=on)"


@pytest.mark.parametrize(
    ("sentence", "shown"),
    [
        ("Ratio to `tis`: 1.00 {} on `chain`", [("chain", ESS, 50)]),
        ("0.99 {}, 1.00 {} and 0.99 {} on `walk`", [("walk", ESS, step) for step in (50, 150, 250)]),
        ("ratio 1.0 {}, 1.3 {} and 1.1 {}, not", [("walk", OPOB, step) for step in (50, 150, 250)]),
        ("leave-one-out 0.65 {} and 0.86", [("walk", OTHERS, 50)]),
        ("1.1 {}, 1.2 {}, 1.1 {}.", [("walk", "tis+opob(weight=one)", step) for step in (50, 150, 250)]),
    ],
)
def test_ratios_of_signal_to_noise(sentence: str, shown: list[tuple[str, str, int]]) -> None:
    ends = [
        interval(*place[:2], "snr_ratio", place[2]).replace("[1, ", "[1.0, ").replace(", 1]", ", 1.0]")
        for place in shown
    ]
    said = " ".join(TEXT.replace("[1.00, 1.00]", "[1.0, 1.0]").split())
    assert sentence.format(*ends) in said


@pytest.mark.parametrize(
    ("sentence", "task", "method", "quantity", "steps"),
    [
        ("raises signal-to-noise {} times (update 50) and {} times (150;", "chain", OPOB, "snr_ratio", (50, 150)),
        ("(released {} and {} of `tis`", "walk", RELEASED, "snr_ratio", (50, 150)),
        ("leave-one-out 0.65 [0.42, 0.89] and {}, at 250 {})", "walk", OTHERS, "snr_ratio", (150, 250)),
        ("{} times are left at update 50 and only {} at 150", "chain", OTHERS, "snr_ratio", (50, 150)),
        ("points *away* from that policy ({}, {})", "walk", "reinforce", "cosine_back", (50, 250)),
        ("one update of clip has cosine {}, {} and {}", "walk", "clip", "cosine", (50, 150, 250)),
        ("on `walk`, gspo {}, {}, {},", "walk", "gspo", "cosine", (50, 150, 250)),
        ("vespo {}, {}, {}; vcpo", "walk", "vespo", "cosine", (50, 150, 250)),
        ("reinforce on fresh data ({}, {}, {})", "walk", "reinforce (lag 0)", "cosine", (50, 150, 250)),
        ("other way round (vcpo {}, {}, {};", "chain", "vcpo", "cosine", (50, 150, 250)),
        ("cosine {}, {} and {} against", "walk", OPOB, "cosine", (50, 150, 250)),
        ("against {}, {} and {}.", "walk", "tis", "cosine", (50, 150, 250)),
    ],
)
def test_values(sentence: str, task: str, method: str, quantity: str, steps: tuple[int, ...]) -> None:
    found = [value(task, method, quantity, step) for step in steps]
    padded = [f"{one}0" if re.fullmatch(r"-?0\.\d", one) else one for one in found]
    assert sentence.format(*found) in TEXT or sentence.format(*padded) in TEXT, found


def test_cosines_with_and_without_opob_on_chain() -> None:
    pairs = [(value("chain", "tis", "cosine", step), value("chain", OPOB, "cosine", step)) for step in (50, 150, 250)]
    first, second, third = (f"{one} to {other}" for one, other in pairs)
    assert f"from {first}, {second} and {third}, without" in TEXT.replace("0.13 to 0.57", second)
    mean = FOUND.xs(("chain", OPOB, 16, "cosine_of_mean"), level=(0, 1, 2, 3)).xs(False, level=1)["value"]
    assert "(cosine of the mean 0.96 or more)" in TEXT
    assert mean.min() >= 0.96


def test_ranges() -> None:
    walk = FOUND.xs(("walk", 16, False), level=("task", "lag", "preconditioned"))["value"]
    biased = walk.loc[["clip", "gspo", "vespo"]]
    ratio = biased.xs("snr_ratio", level="quantity")
    assert f"have {ratio.min():.0f} to 130 times the ratio" in TEXT
    assert f"{ratio.max():.2g}" == "1.3e+02"
    cosine = biased.xs("cosine_of_mean", level="quantity").unstack("step")
    early = cosine[[50, 150]].stack()
    assert f"is {early.min():.2f} to {early.max():.2f} at 50 and 150, about {cosine[250].mean():.1f} at 250" in TEXT
    back = biased.xs("cosine_back", level="quantity")
    assert f"is {back.min():.2f} to {back.max():.2f} (the true" in TEXT
    variance = [walk["tis", "variance", step] / walk[OPOB, "variance", step] for step in (50, 150, 250)]
    assert f"divides the variance by {min(variance):.1f} to {max(variance):.1f}" in TEXT
    correlation = walk[ESS, "scale_norm_correlation"]
    assert f"{correlation.max():.1f} to {correlation.min():.1f}, in the CSV" in TEXT
    chain = FOUND.xs(("chain", ESS, 16, "step_scale"), level=(0, 1, 2, 3)).xs(False, level=1)["value"]
    assert "is 0.95 or more there" in TEXT
    assert chain.min() >= 0.95


def test_what_no_table_has_is_without_a_number() -> None:
    """A star stands behind what was measured once: such a sentence has no number but that of the update."""
    said = PAGE.read_text().split("## In words")[1].split("## Caveats")[0]
    starred = re.findall(r"[^.]*\.\*(?!\*)", said)
    assert len(starred) == 1
    assert not re.findall(r"\d", " ".join(starred))
    assert "no table of it ships" in said


def test_the_sizes_of_the_probe() -> None:
    sizes = ROWS[ROWS["method"] == "tis"].groupby("step")["fresh"].first()
    assert sizes.to_dict() == {50: 256, 150: 256, 250: 192}
    assert "64 batches sampled by the weights of 16 updates before and 256 (192 at update 250) fresh batches" in TEXT
    assert set(ROWS.loc[(ROWS["lag"] == 16), "n"]) == {64}


def test_the_summary_of_the_study() -> None:
    text = prose(STUDIES / "prediction" / "README.md")
    said = "OPOB raises signal-to-noise 10 {} and 24 {} times on chain"
    assert said.format(*(interval("chain", OPOB, "snr_ratio", step) for step in (50, 150))) in text
    walk = [interval("walk", OPOB, "snr_ratio", step) for step in (50, 150)]
    assert "1.0 {} and 1.3 {} times on walk".format(*walk) in text
    scaled = [interval("walk", ESS, "snr_ratio", step) for step in (50, 150)]
    assert "0.99 {} and 1.0 {} on walk".format(*scaled) in text

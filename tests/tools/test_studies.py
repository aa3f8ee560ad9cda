"""Studies were registered before their tables, templates read them, and the statistics are right."""

import subprocess
from pathlib import Path

import jinja2
import numpy as np
import pandas as pd
import pytest

from studies import boundaries, estimates, formats, pages, ranking
from studies.estimates import Estimate, over_seeds

ROOT = Path(__file__).resolve().parents[2]


def test_designs_are_older_than_tables() -> None:
    known = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=False
    )
    if known.stdout.strip() != "false":
        pytest.skip("the history is not here: no git, or a shallow clone")
    late = [study for study, registered in pages.registrations() if not registered]
    assert not late, "the design was committed, or changed, after the first table"


def repository(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pages, "ROOT", folder)
    monkeypatch.setattr(pages, "STUDIES", folder / "studies")
    study = folder / "studies" / "one"
    (study / "tables").mkdir(parents=True)
    pages._git("init", "-q")
    return study


def commit(path: Path, text: str) -> None:
    path.write_text(text)
    pages._git("add", "-A")
    pages._git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-q", "-m", path.name)


@pytest.mark.parametrize(
    ("order", "registered"),
    [("dt", True), ("ddt", True), ("dtt", True), ("td", False), ("dtd", False), ("DtdD", True)],
)
def test_a_late_or_changed_design_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str, registered: bool
) -> None:
    study = repository(tmp_path, monkeypatch)
    for number, kind in enumerate(order):  # D: always the same text
        file = f"tables/{number}.csv" if kind == "t" else "design.yaml"
        commit(study / file, kind if kind == "D" else f"version: {number}\n")
    assert list(pages.registrations()) == [("one", registered)]


def test_a_design_without_tables_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository(tmp_path, monkeypatch) / "design.yaml", "")
    assert not list(pages.registrations())


def test_a_template_reads_the_tables_and_the_design_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "runs.csv").write_text("seed,final_reward\n0,0.5\n1,0.7\n1,0.9\n")
    design = dict.fromkeys(pages.REGISTERED, "said")
    (tmp_path / "design.yaml").write_text("".join(f"{name}: {text}\n" for name, text in design.items()))
    template = tmp_path / "page.md.j2"
    template.write_text("{{ mean(table('runs.csv')).value|fixed }} {{ design.margin }}\n")
    assert pages.rendered(template) == "0.65 said\n"
    template.write_text("{{ nothing }}")
    with pytest.raises(jinja2.UndefinedError):
        pages.rendered(template)
    (tmp_path / "design.yaml").write_text("margin: 0.2\n")
    with pytest.raises(ValueError, match="does not say: preset, questions"):
        pages.rendered(template)


def runs(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"task": "walk", "method": "tis", "staleness": 16, "lr": 1e-3, **columns})


def test_a_seed_counts_once_however_many_runs_it_has() -> None:
    found = estimates.mean(runs(seed=[0, 0, 0, 1], final_reward=[1.0, 1.0, 1.0, 0.0]))
    assert (found.value, found.seeds) == (0.5, 2)


def test_a_difference_is_paired_by_place_and_seed() -> None:
    one = runs(seed=[0, 1, 2], method="vcpo", final_reward=[0.5, 0.6, 0.7])
    other = runs(seed=[2, 1, 0, 3], method="tis", final_reward=[0.6, 0.4, 0.2, 0.9])
    found = estimates.difference(pd.concat([one, other]), "vcpo", "tis")
    np.testing.assert_allclose(sorted(found.values), [0.1, 0.2, 0.3])
    elsewhere = estimates.difference(pd.concat([one, other.assign(lr=2e-3)]), "vcpo", "tis", at=["task"])
    assert elsewhere.value == pytest.approx(found.value)


@pytest.mark.parametrize(
    ("values", "gain", "word"),
    [
        ([0.3, 0.31, 0.29], 1.0, "higher"),
        ([-0.3, -0.31, -0.29], 1.0, "lower"),
        ([0.10, 0.11, 0.09], 1.0, "slightly higher"),
        ([0.01, -0.01, 0.0], 1.0, "equivalent"),
        ([0.01, -0.01, 0.0], 0.01, "undecided"),
        ([0.9, -0.9, 0.1], 1.0, "undecided"),
    ],
)
def test_a_difference_goes_before_equivalence(values: list[float], gain: float, word: str) -> None:
    assert estimates.word(over_seeds(pd.Series(values)), gain) == word


def search(method: str, lag: int, seed: int, **ended: bool) -> pd.DataFrame:
    """A search whose runs at rates 1, 2, 4, ... failed or did not."""
    rates = [2.0**rung for rung in range(len(ended))]
    return runs(method=method, staleness=lag, seed=seed, lr=rates, failed=list(ended.values()), onset=rates)


def test_a_boundary_lies_between_two_rates_or_beyond_the_ladder() -> None:
    found = boundaries.boundaries(
        pd.concat(
            [
                search("tis", 4, 0, a=False, b=False, c=True),
                search("tis", 4, 1, a=True, b=True, c=True),
                search("tis", 4, 2, a=False, b=False, c=False),
                search("tis", 4, 3, a=False, b=True, c=False),
            ]
        )
    )
    assert list(found["log2_rate"]) == [1.5, -0.5, 2.5, 0.5]
    assert list(found["under"]) == [False, True, False, False]
    assert list(found["over"]) == [False, False, True, False]
    assert list(found["onset"].fillna(0)) == [4.0, 1.0, 0.0, 2.0]


def test_the_last_survivor_lies_below_the_first_failure() -> None:
    searches = [
        search("tis", 4, 0, a=False, b=True, c=False),
        search("tis", 4, 1, a=True),
        search("tis", 4, 2, a=False, b=False),
    ]
    found = boundaries.last_survivors(pd.concat(searches))
    assert sorted(zip(found["seed"], found["lr"], strict=True)) == [(0, 1.0), (2, 2.0)]


def test_the_law_of_one_over_the_lag_has_exponent_1() -> None:
    bounds = pd.DataFrame(
        [("walk", one, lag, seed, base + seed - np.log2(lag))
         for one, base in (("vcpo", 1.0), ("tis", 0.0)) for lag in (4, 16) for seed in range(3)],
        columns=["task", "method", "staleness", "seed", "log2_rate"],
    )  # fmt: skip
    own = bounds[bounds["method"] == "tis"]
    assert boundaries.exponent(own, 4, 16).value == pytest.approx(1.0)
    assert boundaries.tolerance(bounds, "vcpo", "tis").value == pytest.approx(1.0)
    assert boundaries.rate(own[own["staleness"] == 4]) == pytest.approx(2 ** (0 + 1 - 2))


def test_where_the_lowest_rate_earns_most() -> None:
    earned = pd.concat(
        [
            runs(seed=[0, 1, 0, 1], lr=[1.0, 1.0, 2.0, 2.0], final_reward=[0.9, 0.7, 0.8, 0.7]),
            runs(seed=[0, 1, 0, 1], lr=[1.0, 1.0, 2.0, 2.0], final_reward=[0.9, 0.7, 0.8, 0.9], staleness=4),
            runs(seed=[0, 1, 0], lr=[1.0, 1.0, 2.0], final_reward=[0.1, 0.1, 0.9], staleness=64),
        ]
    )
    assert boundaries.lowest_earns_most(earned, 2) == (1, 2)
    assert boundaries.lowest_earns_most(earned, 1) == (1, 3)


def test_a_share_of_the_best_gain_is_a_mean_over_places_that_all_have_the_rate() -> None:
    gained = pd.concat(
        [
            runs(seed=[0, 1, 0, 0], rate=[1.0, 1.0, 2.0, 4.0], area=[0.5, 0.3, 0.1, -0.4], staleness=4),
            runs(seed=[0, 0], rate=[1.0, 2.0], area=[0.2, 0.1], staleness=16),
            runs(seed=[0, 0], rate=[1.0, 1.0], area=[0.8, 0.1], staleness=[4, 16], method="vespo"),
        ]
    )
    shares = boundaries.share_of_best(gained)
    assert shares.loc["tis", [1.0, 2.0]].tolist() == pytest.approx([(0.5 + 1) / 2, (0.125 + 0.5) / 2])
    assert shares.loc["vespo", 1.0] == pytest.approx((1 + 0.5) / 2)
    assert shares.isna().sum().to_dict() == {1.0: 0, 2.0: 1, 4.0: 2}


def signals(scores: dict[int, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [("walk", "tis", 16, seed, update, score * update) for seed, score in scores.items() for update in (10, 20)],
        columns=["task", "method", "staleness", "seed", "update", "ess"],
    )


def test_auroc_is_the_share_of_survivors_that_a_failed_run_outranks() -> None:
    ended = runs(seed=[0, 1, 2, 3, 4], failed=[True, True, False, False, False], onset=[30, 40, None, None, None])
    found = ranking.auroc(ended, signals({0: 2.0, 1: 9.0, 2: 1.0, 3: 2.0, 4: 3.0}), "ess", lead=20)
    assert found.value == pytest.approx(((1 + 0.5 + 0) / 3 + 1) / 2)
    without = ranking.auroc(ended[ended["seed"] != 4], signals({0: 2.0, 1: 9.0, 2: 1.0, 3: 2.0}), "ess", lead=20)
    assert found.values[4] == pytest.approx(5 * found.value - 4 * without.value)


def test_numbers_as_they_stand_in_a_sentence() -> None:
    found = Estimate(np.array([0.1, 0.2, 0.3]), 0.2)
    assert formats.fixed(found) == "0.20 [-0.05, 0.45]"
    assert formats.fixed(found, 1, sign=True) == "+0.2 [-0.05, 0.4]"
    assert formats.fixed(-0.001) == "0.00"
    assert [formats.end(one) for one in (-0.0002, 0.004, 0.0, 0.25)] == ["-0.0002", "0.004", "0", "0.25"]
    assert formats.fixed(0.25, 1, sign=True) == "+0.2"
    assert formats.percent(found) == "20% [-5, 45]"
    assert formats.percent(0.5) == "50%"
    assert formats.factor(Estimate(np.array([1.0, 1.0]), 1.0)) == "2.00 [2.00, 2.00]"
    assert [formats.rate(rate) for rate in (0.0016, 0.001, 2.5e-5)] == ["1.6e-3", "1e-3", "2.5e-5"]

"""The study of the third task finds planted boundaries by the phase study's rule, and says nothing before its end."""

from pathlib import Path

import pytest
from phase_study.contrasts import MATCHED, SHUFFLED
from phase_study.design import Unit
from phase_study.tables import complete, counted, shipped
from phase_world import planted, world
from third_task_study import page
from third_task_study.design import FOLDER, PLAN, RUNS
from third_task_study.wording import answer


def boundary(unit: Unit) -> float:
    """The shuffled control bears what VCPO bears."""
    if unit.method == SHUFFLED:
        return planted(Unit(unit.seed, unit.task, "vcpo", unit.staleness))
    return planted(unit)


def test_what_is_planted_is_found(tmp_path: Path) -> None:
    runs = world(boundary=boundary, plan=PLAN).assign(mean_step_scale=1.0, mean_ess=0.5)
    assert complete(runs, PLAN) == [0, 1, 2, 3]
    assert complete(runs[runs["method"] != "tis"], PLAN) == []
    tables = page.made(counted(runs, PLAN))
    rates = tables["rates"].set_index(["against", "staleness"])
    for lag in (4, 16, 64):
        assert 0.5 < rates.loc[(MATCHED, lag), "difference"] < 1.5
        assert abs(rates.loc[(SHUFFLED, lag), "difference"]) < 0.5
    assert set(tables["exponents"].query("method == 'tis'")["verdict"]) == {"refuted"}
    said = answer(tables)
    assert "constant step of the same mean?" in said
    assert "own steps in random order?" in said
    page.write(runs, tmp_path)
    assert "complete seeds: 4." in (tmp_path / "README.md").read_text()


def test_nothing_is_computed_before_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world(plan=PLAN).to_csv(tmp_path / RUNS.name, index=False)
    page.refresh(tmp_path, end=False)
    assert "complete seeds: [0, 1, 2, 3]" in capsys.readouterr().out
    assert [one.name for one in tmp_path.iterdir()] == [RUNS.name]


def test_the_page_follows_from_what_ships(tmp_path: Path) -> None:
    if len(complete(shipped(RUNS), PLAN)) < page.LEAST_SEEDS:
        assert not (FOLDER / "README.md").exists(), "a page without the seeds it needs"
        return
    (tmp_path / RUNS.name).write_bytes(RUNS.read_bytes())
    page.refresh(tmp_path, end=True)
    made = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert {"README.md", "rates.csv", "exponents.csv"} <= set(made)
    for name, text in made.items():
        assert text == (FOLDER / name).read_bytes(), name

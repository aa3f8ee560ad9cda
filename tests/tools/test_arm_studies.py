"""The studies of arms: their tables recover planted effects, and their pages follow from the shipped runs."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from vcpo_bench.bench.cells.grid_spec import GridSpec
from vcpo_bench.bench.cells.settings import CellSettings

ROOT = Path(__file__).parents[2]
NAMES = ("design", "tables", "page")
SHARED = ("again", "arms", "arm_tables", "filled_page")
PLACE = ["arm", "task", "method", "staleness", "seed"]


@pytest.fixture(params=["moe", "tool"])
def tools(request: pytest.FixtureRequest) -> Iterator[dict[str, ModuleType]]:
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "tools" / f"{request.param}_study"))
    own = {name: importlib.import_module(name) for name in NAMES}
    yield own | {name: importlib.import_module(f"arm_study.{name}") for name in SHARED} | {"kind": request.param}
    sys.path[:] = before
    for name in NAMES:
        sys.modules.pop(name, None)


def planted(tools: dict[str, ModuleType]) -> pd.DataFrame:
    """Runs of all arms: R3 has a quarter of the KL; lag costs 0.02 of reward a step; VCPO and RSPO earn 0.1 more."""
    rows = []
    for arm in tools["design"].ARMS:
        spec = arm.spec
        for task in spec.tasks:
            for method in spec.methods:
                for lag in spec.staleness:
                    for seed in spec.seeds:
                        noise = np.random.default_rng([seed, lag, len(method)]).normal(scale=0.01)
                        row = {"arm": arm.name, "task": task, "method": method, "staleness": lag, "seed": seed}
                        row |= dict.fromkeys(tools["tables"].COLUMNS, 0.5 + noise)
                        row["kl_mu_theta_k3"] = (0.25 if arm.name.endswith("r3") else 1.0) * (1 + lag) * np.exp(noise)
                        row["final_reward"] = 0.5 - 0.02 * lag + 0.1 * (method in ("vcpo", "rspo")) + noise
                        rows.append(row | {"event": "healthy", "failed": False})
    return pd.DataFrame(rows)


def test_planted_effects_are_found(tools: dict[str, ModuleType]) -> None:
    found = tools["tables"].made(planted(tools))
    if tools["kind"] == "moe":
        engine = found["engine"].set_index(["replay", "staleness"])
        assert engine.loc[("r3", 0), "value"] == pytest.approx(0.25)
        assert engine.loc[("r3", 0), "verdict"] == "holds"
        assert engine.loc[("r2", 4), "value"] == pytest.approx(1.0)
        assert set(found["lag"]["verdict"]) == {"left", "harmless", ""}
        assert set(found["lag"]["staleness"]) == {4, 16}
        assert set(found["levels"]["arm"]) == {arm.name for arm in tools["design"].ARMS}
        rewards = found["shift"].query("what.str.startswith('final')")
        assert rewards["value"].to_numpy() == pytest.approx(0.1, abs=0.02)
        assert set(rewards["verdict"]) == {"more"}
        assert "rspo" not in set(found["methods"]["method"])
    else:
        rivals = found["rivals"]
        assert rivals["value"].to_numpy() == pytest.approx(0.1, abs=0.02)
        assert set(rivals["verdict"]) == {"more"}
        assert found["lag"]["value"].to_numpy() == pytest.approx(-0.16, abs=0.02)
        assert set(found["lag"]["verdict"]) == {"less"}


def test_the_text_has_a_place_for_every_table(tools: dict[str, ModuleType]) -> None:
    runs, page = planted(tools), tools["page"].PAGE
    again = {"moved": pd.DataFrame(columns=["table"]), "again": "as before"}
    made = tools["filled_page"].render(page.text.read_text(), tools["tables"].made(runs) | again)
    assert "{{" not in made
    assert made.count("|---") > 20
    with pytest.raises(ValueError, match="needs"):
        tools["filled_page"].render("no place", {"levels": runs})
    with pytest.raises(ValueError, match="no table"):
        tools["filled_page"].render("{{unknown}}", {})


def test_the_cells_are_those_of_the_registration(tools: dict[str, ModuleType]) -> None:
    text = (tools["page"].PAGE.folder / "registration.md").read_text()
    cells = sum(len(tools["arm_tables"].plan_grid(arm.spec)) for arm in tools["design"].ARMS)
    assert f"{cells} cells" in text
    assert f"{tools['design'].STEPS} updates" in text


def test_the_page_follows_from_the_shipped_runs(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    page = tools["page"].PAGE
    readme = page.folder / "README.md"
    if not page.runs.exists():
        assert not readme.exists(), "a page without the runs it rests on"
        assert "Not run yet" in (page.folder / "registration.md").read_text()
        return
    tools["filled_page"].write(tmp_path, page.text.read_text(), page.made())
    for made in tmp_path.iterdir():
        assert made.read_text() == (page.folder / made.name).read_text(), (
            f"run: python tools/{tools['kind']}_study/page.py"
        )


def test_verdicts_that_move_are_told(tools: dict[str, ModuleType]) -> None:
    runs = planted(tools)
    other = runs.assign(final_reward=0.5)
    again, made = tools["again"], tools["tables"].made
    assert again.moved(made(runs), made(runs)).empty
    told = again.moved(made(runs), made(other))
    assert len(told)
    assert not (told["earlier"] == told["now"]).any()
    assert (
        again.agreement(runs, runs)
        == f"{len(runs)} final rewards are the same, 0 differ, by at most 0.000, and no fate differs"
    )
    lost = runs.assign(failed=[True, *runs["failed"][1:]])
    assert again.agreement(runs, lost).endswith("1 fate differs")
    with pytest.raises(ValueError, match="other runs"):
        again.agreement(runs, runs[1:])


@pytest.mark.slow  # starts a worker
@pytest.mark.parametrize("tools", ["moe"], indirect=True)
def test_runs_are_made_gathered_and_missed(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    def arm(policy: str, seeds: int) -> Any:
        settings = CellSettings(policy=policy, steps=3, prompts=2, responses=4)
        spec = GridSpec(("clip",), (1,), range(seeds), ("chain",), settings=settings, controls=False)
        return tools["arms"].Arm(policy, spec)

    arms = [arm("moe", 1), arm("tiny", 1)]
    tools["arms"].run_arms(arms, tmp_path, jobs=1)
    runs = tools["arm_tables"].run_table(tmp_path, arms, tools["tables"].COLUMNS, since=1)
    assert runs["arm"].tolist() == ["moe", "tiny"]
    assert runs["routers_changed"].notna().tolist() == [True, False]
    assert runs["kl_mu_theta_k3"].between(0, 1).all()
    with pytest.raises(RuntimeError, match="arm tiny is not complete"):
        tools["arm_tables"].run_table(tmp_path, [arm("tiny", 2)], tools["tables"].COLUMNS, since=1)


def test_the_answer_about_tool_use_is_what_its_tables_say() -> None:
    folder = Path(__file__).parents[2] / "docs" / "studies" / "tool-use"
    found = pd.read_csv(folder / "rivals.csv")
    late = found[found["staleness"] == 8].set_index(["task", "method"])
    assert late.loc["lookup", "verdict"].to_dict() == {"tis": "more", "vespo": "more, equivalent", "clip": "more"}
    assert late.loc["lookup", "value"].between(0.03, 0.09).all()
    below = {"tis": "equivalent", "vespo": "less, equivalent", "clip": "less, equivalent"}
    assert late.loc["guess", "verdict"].to_dict() == below
    assert late.loc["guess", "value"].round(2).to_dict() == {"tis": 0.0, "vespo": -0.01, "clip": -0.02}
    lag = pd.read_csv(folder / "lag.csv").set_index(["task", "method"])
    assert lag.xs("vcpo", level="method")["verdict"].str.contains("equivalent").all()
    cost = lag.xs("reinforce", level="method")["value"].round(1)
    assert cost.to_dict() == {"guess": -0.1, "lookup": -0.3}

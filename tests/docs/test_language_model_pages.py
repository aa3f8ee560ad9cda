"""The tables of the studies on language models are those of what ships with them."""

import gzip
import re

import pandas as pd
import pytest
from page_prose import STUDIES, prose, table

VLLM, LANGUAGE = STUDIES / "vllm" / "README.md", STUDIES / "language-models" / "README.md"
METHODS = ["vcpo", "clip", "vespo", "reinforce"]


def test_the_table_of_vllm() -> None:
    scores = pd.read_csv(VLLM.with_name("scoreboard.csv")).set_index(["staleness", "method"])
    assert set(scores["seeds"]) == {1}
    assert f"All {scores['total'].sum()} cells completed" in prose(VLLM)
    assert not scores[["nan", "error", "partial"]].any(axis=None)
    for lag, cells in table(VLLM, ["lag", "vcpo", "clip", "vespo", "reinforce (control)"]).items():
        for method, cell in zip(METHODS, cells, strict=True):
            row = scores.loc[(int(lag), method)]
            shown = re.findall(r"\d\.\d\d", cell)
            assert shown[0] == f"{row['final_reward']:.2f}"
            assert shown[1:] == ([f"{row['median_ess']:.2f}"] if lag == "4" else [])
    at_4 = scores.loc[4]
    assert f"a mean of {at_4['lag_mean'].iloc[0]:.1f} and at most {at_4['lag_max'].iloc[0]:.0f} at lag 4" in prose(VLLM)
    assert (scores.loc[0, "lag_max"] == 0).all()
    assert scores.loc[0, "median_ess"].to_numpy() == pytest.approx(1.0, abs=1e-6)


ROW = re.compile(
    r'data-v="(?P<lag>\d)">\d</td><td class="[^"]*">(?P<method>[^<]*)</td><td[^>]* data-v="(?P<seeds>[\d.]+)">\d+</td>'
    r'<td[^>]* data-v="(?P<reward>[\d.]+)" data-id="final_reward-'
)


def reported(task: str) -> dict[tuple[str, int], tuple[int, float]]:
    """Seeds and final reward by method and lag, as the scoreboard of a shipped report has them."""
    page = gzip.decompress(LANGUAGE.with_name(f"{task}.html.gz").read_bytes()).decode()
    found = [row.groupdict() for row in ROW.finditer(page)]
    return {
        (row["method"].strip("*"), int(row["lag"])): (int(float(row["seeds"])), float(row["reward"])) for row in found
    }


def test_the_table_of_language_models() -> None:
    shown = table(LANGUAGE, ["", *(f"{task}, lag {lag}" for task in ("countdown", "arithmetic") for lag in (0, 4))])
    for place, (task, lag) in enumerate((task, lag) for task in ("countdown", "arithmetic") for lag in (0, 4)):
        found = reported(task)
        for method in METHODS:
            seeds, reward = found[method, lag]
            assert seeds == 2
            name = "reinforce (control)" if method == "reinforce" else method
            assert shown[name][place] == f"{reward:.2f}", (task, lag, method)

"""The tables of the studies on language models are those of what ships with them."""

import gzip
import json
import re
from pathlib import Path

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


def rewards_over_updates(report: Path) -> dict[str, dict[str, list[float]]]:
    """Sampled reward at each evaluation by panel and method, as the curves of a shipped report have it."""
    page = gzip.decompress(report.read_bytes()).decode()
    scripts = re.finditer(r'<script type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    (data,) = (one for one in scripts if "column sampled_reward of" in page[one.start() - 900 : one.start()])
    found: dict[str, dict[str, list[float]]] = {}
    for line in json.loads(data[1])["lines"]:
        found.setdefault(str(line["panel"]), {})[line["name"]] = line["y"]
    return found


@pytest.mark.parametrize(
    ("page", "report", "said"),
    [
        (VLLM, "report", "warmed up to a sampled reward of {start}"),
        (VLLM, "report", "after 50 updates, from {start} at the start"),
        (LANGUAGE, "countdown", "--out m-count # {start} at the end"),
        (LANGUAGE, "countdown", "| start | {start} | {start} | 0.33 | 0.33 |"),
        (LANGUAGE, "arithmetic", "--out m-arith # {start} at the end"),
        (LANGUAGE, "arithmetic", "| start | 0.31 | 0.31 | {start} | {start} |"),
    ],
)
def test_where_the_runs_start(page: Path, report: str, said: str) -> None:
    curves = rewards_over_updates(page.with_name(f"{report}.html.gz"))
    starts = {round(rewards[0], 4) for panel in curves.values() for rewards in panel.values()}
    (start,) = starts
    assert said.format(start=f"{start:.2f}") in prose(page)
    assert start * 256 == pytest.approx(round(start * 256), abs=0.02), "a share of the 256 held-out prompts"


def llama(layers: int, width: int) -> int:
    """Parameters of a Llama with a character tokenizer, embeddings tied: its hidden width is 8/3 of its width."""
    characters, hidden = 99, 8 * width // 3
    return layers * (4 * width**2 + 3 * width * hidden + 2 * width) + width + characters * width


@pytest.mark.parametrize(
    ("page", "layers", "width", "said"),
    [
        (VLLM, 2, 96, "parameters (2 layers of width 96) with a character tokenizer"),
        (LANGUAGE, 4, 128, "parameters (4 layers of width 128; `llama(1M)` of this version has a width of 144)"),
        (STUDIES / "trl" / "README.md", 2, 64, "parameters on two-term arithmetic"),
    ],
)
def test_how_large_the_models_are(page: Path, layers: int, width: int, said: str) -> None:
    assert f"{llama(layers, width):,} {said}" in prose(page)


def test_how_many_cells_the_language_models_ran() -> None:
    cells = sum(seeds for task in ("countdown", "arithmetic") for seeds, _ in reported(task).values())
    assert f"{cells} cells, all completed" in prose(LANGUAGE)
    assert "At lag 0 clip, vespo and reinforce are the same update, and end alike." in prose(LANGUAGE)
    for task in ("countdown", "arithmetic"):
        ended = {f"{reported(task)[method, 0][1]:.2f}" for method in ("clip", "vespo", "reinforce")}
        assert len(ended) == 1

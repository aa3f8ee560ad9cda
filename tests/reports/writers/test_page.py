"""The HTML page: complete, self-contained, the same bytes every time, and safe whatever the results hold."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vcpo_bench.analysis.results import load
from vcpo_bench.errors import UsageError
from vcpo_bench.reports.study import Study
from vcpo_bench.reports.writers.html import render, write_page

VOID = {"meta", "link", "br", "hr", "input", "img"}
OPEN = ["in-short", "scoreboard", "learning-curves", "ess", "survival", "threats"]
FOLDED = ["gradients", "realized-lag", "cells"]


class Checker(HTMLParser):
    """Collects ids, links and attributes, and refuses tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids.update(value for name, value in attrs if name == "id" and value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_well_formed_and_every_reference_is_inside(page: str) -> None:
    checked = Checker(page)
    assert [name for name, times in checked.ids.items() if times > 1] == []
    links = [value for _, name, value in checked.attributes if name == "href"]
    assert links
    assert [link for link in links if not (link.startswith("#") and link[1:] in checked.ids)] == []
    references = re.findall(r"url\(([^)]*)\)", page)
    assert [name for name in references if name.strip('"')[1:] not in checked.ids] == []


def test_page_has_every_section_in_order(page: str) -> None:
    places = [page.index(f'<section id="{name}"') for name in OPEN]
    places += [page.index(f'<details class="section" id="{name}"') for name in FOLDED]
    assert places == sorted(places)
    assert page.count("<figure") >= 7


def test_page_loads_nothing_and_its_policy_forbids_it(page: str) -> None:
    checked = Checker(page)
    sources = [
        one for one in checked.attributes if one[1] in ("src", "srcset", "action", "background", "data", "poster")
    ]
    assert all(value.startswith("data:") for _, _, value in sources)
    assert "@import" not in page
    addresses = set(re.findall(r"https?://[^\"'\s<)]*", page))
    assert addresses <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}, "namespaces only"
    policy = next(value for tag, name, value in checked.attributes if tag == "meta" and "default-src" in value)
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_data_of_the_figures_is_json_and_names_the_methods(page: str) -> None:
    blocks = [
        json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    ]
    curves = next(block for block in blocks if block["name"] == "reward-steps-chain")
    assert {line["name"] for line in curves["lines"]} == {"vcpo", "clip", "reinforce"}
    assert [panel["label"] for panel in curves["panels"]] == [f"lr 3e-4, lag {lag}" for lag in (0, 1, 16)]
    line = curves["lines"][0]
    assert len(curves["xs"][line["x"]]) == len(line["y"]) == len(line["low"]) == 13
    for block in blocks:
        for panel in block["panels"]:
            left, top, right, bottom = panel["box"]
            assert 0 <= left < right <= 648
            assert 0 <= top < bottom


def test_verdict_is_what_analysis_says(page: str, study: Study) -> None:
    first = html.unescape(page.split("<main>")[1].split("</section>")[0])
    assert f"{len(study.cells)} training runs: 3 methods on chain, lags 0, 1 and 16" in first
    assert "ends highest, reward " in first
    assert first.count("<li>") == 2, "one sentence for each lag"
    everywhere = html.unescape(page)
    for analysis in ("compare", "collapse", "weights", "gradients", "coverage"):
        for statement in study.findings(analysis).statements:
            assert everywhere.count(f">{statement.text}</span>") == 1, statement.text
    assert "is first at 75%" not in first, "said where times are compared"


def test_failures_and_threats_are_named(page: str) -> None:
    assert "1 cell ended in an error and is missing from every comparison." in page
    assert "ValueError: broken on purpose" in page
    assert "One task (chain)" in page


def test_one_cell_is_enough(make_results: Callable[..., Path], tmp_path: Path) -> None:
    make_results(tmp_path / "one", methods=("vcpo",), lags=(16,), seeds=(0,), steps=30, controls=False)
    text = write_page(tmp_path / "one", tmp_path / "one.html").read_text(encoding="utf-8")
    Checker(text)
    assert "1 training run: 1 method on chain" in text


def test_only_failures_running_cells_and_damaged_files_without_the_path_to_them(
    make_results: Callable[..., Path], tmp_path: Path
) -> None:
    shapes, methods = {"vcpo": "error"}, ("vcpo", "tis", "clip")
    few = {"methods": methods, "lags": (4,), "seeds": (0,), "steps": 60, "controls": False}
    root = make_results(tmp_path / "secret" / "bad", shapes=shapes, partial=("tis",), **few)
    (next((root / "cells").glob("*clip*")) / "cell.json").write_text("{broken")
    text = render(Study(load(root, include_partial=True)))
    Checker(text)
    assert "1 error" in text
    assert "1 partial" in text
    assert "cell.json cannot be read" in text
    assert "secret" not in text
    assert "bad/cells/" in text
    with pytest.raises(UsageError, match="not a results folder"):
        write_page(tmp_path, tmp_path / "x.html")


def test_strings_full_of_html_stay_strings(make_results: Callable[..., Path], tmp_path: Path) -> None:
    nasty = "<b onclick='x'>&amp;\"`${1}</b>$\\frac{$"
    root = make_results(tmp_path / "n", methods=("vcpo",), lags=(16,), seeds=(0, 1), steps=60, controls=False)
    for cell in (root / "cells").iterdir():
        facts = json.loads((cell / "cell.json").read_text())
        facts["config"] |= {"method": nasty, "task": "</script><script>alert(1)</script>"}
        facts |= {"reason": nasty, "status": "nan", "provenance": {nasty: nasty}}
        (cell / "cell.json").write_text(json.dumps(facts))
    text = render(Study(load(root)))
    checked = Checker(text)
    assert not [one for one in checked.attributes if one[1].startswith("on")]
    assert text.count("<script") == text.count("</script>")
    assert "<script>alert" not in text
    assert "&lt;b onclick=" in text

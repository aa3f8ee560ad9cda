"""The live page in a real browser: runs side by side, drawn anew as they advance, at two widths and in the dark."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import within


@pytest.fixture
def served(make_results: Callable[..., Path], tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder with two runs, one of them training, and the address that shows it."""
    from vcpo_bench.reports.live.pages import Pages
    from vcpo_bench.reports.live.server import make_server

    for name, partial in (("first", ()), ("second", ("tis",))):
        make_results(tmp_path / name, ("vcpo", "tis"), (1, 16), (0,), 60, controls=False, partial=partial)
    server = make_server(Pages([tmp_path]).answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield tmp_path, f"http://localhost:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def finish(run: Path) -> None:
    for path in (run / "cells").glob("*.partial"):
        for file in (path / "checkpoint-000050").iterdir():
            shutil.copy(file, path / file.name)
        facts = json.loads((path / "cell.json").read_text()) | {"status": "completed"}
        (path / "cell.json").write_text(json.dumps(facts))
        path.rename(path.with_name(path.name.removesuffix(".partial")))


@pytest.fixture
def open_address(browser: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens an address; at the end nothing was logged and nothing asked of another server."""
    logs: list[str] = []
    asked: list[str] = []
    contexts = []

    def opened(address: str, width: int = 1280, scheme: str = "light") -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme))
        tab = contexts[-1].new_page()
        tab.set_default_timeout(1000 * within(60.0))
        tab.on("console", lambda said: logs.append(said.text))
        tab.on("pageerror", lambda error: logs.append(str(error)))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(address)
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert [text for text in logs if "favicon" not in text] == []
    assert all(url.startswith("http://localhost:") for url in asked)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_runs_stand_side_by_side(
    served: tuple[Path, str], open_address: Callable[..., Any], width: int, scheme: str
) -> None:
    tab = open_address(served[1], width, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [card.bounding_box() for card in tab.locator(".run").all()]
    assert len(boxes) == 2
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 1000), "below each other on a phone"
    assert all(card.locator("svg").is_visible() for card in tab.locator(".run").all())
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_a_report_is_drawn_anew_where_it_was_as_its_run_advances(
    served: tuple[Path, str], open_address: Callable[..., Any]
) -> None:
    folder, address = served
    tab = open_address(address)
    tab.get_by_role("link", name="second").click()
    tab.locator("text=Preliminary: 2 of 4 runs not finished").wait_for()
    tab.locator("#gradients > summary").click()
    before = tab.evaluate("scrollY")
    tab.wait_for_timeout(3500)  # until the page has asked once
    finish(folder / "second")
    tab.locator("text=Preliminary").wait_for(state="detached")
    assert tab.locator("#gradients").evaluate("one => one.open")
    assert abs(tab.evaluate("scrollY") - before) < 200
    tab.get_by_role("link", name="All runs").click()
    tab.locator("text=4 cells ended, 0 not ended").nth(1).wait_for()

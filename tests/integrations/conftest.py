"""A browser for the tests that look at pages, and a Tinker server; nothing is imported unless a test needs it."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="runs in .ci/integrations browser")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("nothing to open pages with; .ci/integrations browser installs Chromium")
    flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, headless=True, args=flags)
        yield started
        started.close()


@pytest.fixture(scope="session")
def tinker_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running `TinkerServer`."""
    from tinker_server import TinkerServer, save_qwen3

    model = save_qwen3(tmp_path_factory.mktemp("models") / "qwen3")
    started = TinkerServer(model, tmp_path_factory.mktemp("server"))
    started.start()
    yield started
    started.kill()


@pytest.fixture
def server(tinker_server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, at the address that cells take it from."""
    from vcpo_bench.bench.learners.tinker_api import service

    monkeypatch.setenv(service.URL_VARIABLE, tinker_server.url)
    return tinker_server

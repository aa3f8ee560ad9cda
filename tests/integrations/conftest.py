"""A browser for the tests that look at pages; nothing is imported unless one of them runs."""

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

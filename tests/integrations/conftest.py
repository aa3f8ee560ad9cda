"""A browser and a Slurm for the tests that need them; nothing is imported unless a test does."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import within


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


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens a page at a width and scheme; at the end it has logged nothing and fetched nothing."""
    logs: list[str] = []
    outside: list[str] = []
    contexts = []

    def requested(request: Any) -> None:
        if not request.is_navigation_request() and not request.url.startswith(("data:", "blob:")):
            outside.append(request.url)

    def opened(page: Path, width: int = 1280, scheme: str = "light", unfold: bool = True) -> Any:
        viewport = {"width": width, "height": 900}
        context = browser.new_context(offline=True, viewport=viewport, color_scheme=scheme, accept_downloads=True)
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(1000 * within(30.0))
        # Chromium's own listing of a folder warns about itself
        tab.on("console", lambda said: None if said.text.startswith("crbug/") else logs.append(said.text))
        tab.on("pageerror", lambda error: logs.append(str(error)))
        tab.on("request", requested)
        tab.goto(page.as_uri())
        if unfold:
            tab.locator("details.section").evaluate_all("found => found.forEach(one => { one.open = true; })")
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert logs == []
    assert outside == []


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A running `SlurmCluster`, and the environment in which its commands are found."""
    from slurm_cluster import SlurmCluster

    root = os.environ.get("VCPO_BENCH_SLURM_ROOT", "")
    if not root:
        pytest.skip("needs a Slurm: .ci/integrations slurm unpacks one and names its folder")
    here = Path(tempfile.mkdtemp(prefix="slurm"))  # the name of a socket must be short
    one = SlurmCluster(Path(root), here)
    with pytest.MonkeyPatch.context() as patch:
        try:
            one.start()
            for name, value in one.environment.items():
                patch.setenv(name, value)
            yield one
        finally:
            one.stop()
            shutil.rmtree(here, ignore_errors=True)

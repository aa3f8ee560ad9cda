"""Options and helpers of the methods tests."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", default=None, help="folder with further golden cases, laid out like tests/golden")

"""One finished run that the tests of this folder read; none of them writes to it."""

from pathlib import Path

import pytest
from command_line import RUN, call_here


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("commands") / "run"
    result = call_here(*RUN, "--out", str(out), "--save-config", str(out.parent / "saved.yaml"))
    assert result.exit_code == 0, result.output
    assert "clip" in result.output
    return out

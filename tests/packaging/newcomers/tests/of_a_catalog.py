"""It is listed and shown."""

import pytest
from command_line import call


@pytest.mark.parametrize("verb", ["ls KIND", "show KIND newcomer"])
def test_it_is_known(verb: str) -> None:
    done = call(*verb.split())
    assert done.exit_code == 0
    assert "newcomer" in done.output

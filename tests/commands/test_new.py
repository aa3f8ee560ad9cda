"""`vcpo-bench new`, and what it writes."""

from pathlib import Path

from command_line import RUN, call


def test_a_method_of_ones_own_is_written_tested_and_run(tmp_path: Path) -> None:
    assert call("new", "method", "my-method", "--folder", str(tmp_path / "mine")).exit_code == 0
    again = call("new", "method", "my-method", "--folder", str(tmp_path / "mine"))
    assert again.exit_code == 2
    plugin = tmp_path / "mine" / "my_method.py"
    assert len(plugin.read_text().splitlines()) <= 30
    arguments = [*RUN, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out")]
    arguments[arguments.index("clip")] = "my-method(cap=3)"
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    assert "my-method(cap=3)" in done.output
    plugin.write_text(plugin.read_text() + "# edited\n")
    assert call(*arguments).exit_code == 0
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 2, "an edited plug-in is another method"

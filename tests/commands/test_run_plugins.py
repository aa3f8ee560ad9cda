"""Plug-ins that break, while loading or while training."""

import json
from pathlib import Path

from command_line import RUN, call, call_here


def test_a_broken_plugin_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import nothing_like_this\n")
    result = call("run", "--plugin", str(tmp_path / "broken.py"))
    assert result.exit_code == 2
    assert "nothing_like_this" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_failing_cell_is_a_row_the_rest_goes_on_and_the_exit_code_is_1(tmp_path: Path) -> None:
    assert call("new", "method", "bad-one", "--folder", str(tmp_path)).exit_code == 0
    plugin = tmp_path / "bad_one.py"
    text = plugin.read_text()
    plugin.write_text(text[: text.index("        return Terms")] + "        raise RuntimeError('wires crossed')\n")
    arguments = [*RUN, "--no-controls", "--plugin", str(plugin), "--out", str(tmp_path / "out")]
    arguments[arguments.index("clip")] = "bad-one,clip"
    done = call(*arguments)
    assert done.exit_code == 1, done.output
    cells = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("cells/*/cell.json")]
    assert {(c["config"]["method"], c["status"], c["reason"]) for c in cells} == {
        ("bad-one", "error", "RuntimeError: wires crossed"),
        ("clip", "completed", ""),
    }
    again = call_here(*arguments)  # a failed cell is tried again
    assert again.exit_code == 1, again.output

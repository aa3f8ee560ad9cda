"""The mutation sample finds what tests do not notice, and leaves the repository alone."""

import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
TOOL: dict[str, Any] = run_path(str(TOOLS / "mutants.py"))
sys.path.remove(str(TOOLS))


def test_every_kind_of_change_is_valid_code() -> None:
    source = '''"""Not this: 1 < 2."""
def f(x: int | None, y: float = 2.0) -> bool | None:
    x += 1
    total = -x * 3 if not x else max(x, y)
    é = f"{x + 1}" if any([x <= y and True]) else x.any()
    zip(x, strict=False)
    return total == 4 or é
'''
    found = TOOL["mutants_of"](Path("f.py"), source)
    after = {mutant.after for mutant in found}
    assert {"(3.0)", "x -= 1", "(-x / 3)", "(x)", "(max(x, y) if not x else -x * 3)", "(min)", "(x < y)"} <= after
    assert {"(all)", "(x.all)", "(x <= y or True)", "(False)", "(total != 4)", "(total == 4 and é)"} <= after
    assert not {"x + 1", "int | None", "bool | None", "False"} & {mutant.before for mutant in found}
    for mutant in found:
        code = source.encode()
        compile(code[: mutant.begin] + mutant.after.encode() + code[mutant.end :], "f.py", "exec")


def test_survivors_are_named_and_nothing_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take most of the time
    source = "LIMIT = 5\n\n\ndef double(x):\n    return x + x\n"
    (tmp_path / "calc.py").write_text(source)
    (tmp_path / "test_calc.py").write_text("import calc\n\n\ndef test() -> None:\n    assert calc.double(3) == 6\n")
    alive = TOOL["survivors"](tmp_path, ["calc.py"], ["test_calc.py"], sample=9, seed=0)
    assert {mutant.after for mutant in alive} == {"(6)"}
    assert "1 of 2 killed (2 mutants in all, seed 0)" in capsys.readouterr().out
    assert (tmp_path / "calc.py").read_text() == source
    (tmp_path / "test_calc.py").write_text("def test() -> None:\n    raise AssertionError\n")
    with pytest.raises(SystemExit, match="fail before anything is changed"):
        TOOL["survivors"](tmp_path, ["calc.py"], ["test_calc.py"], sample=1, seed=0)

"""Walls around the interpreter: what a process behind each of those that stand here can see."""

import shutil
import subprocess
from pathlib import Path

import pytest

from vcpo_bench.bench.sandbox import walls
from vcpo_bench.bench.sandbox.walls import NONE, Wall, launcher, strongest

STANDING = [wall for wall in walls._WALLS if shutil.which(wall.name) and walls._stands(wall)]
BUBBLEWRAP = [wall for wall in STANDING if wall.name == "bwrap"]


def behind(wall: Wall, program: str, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script, found = tmp_path / "launcher", shutil.which(program)
    assert found
    script.write_text(launcher(wall, Path(found)))
    script.chmod(0o700)
    return subprocess.run([str(script), *arguments], capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture(params=[*STANDING, NONE], ids=lambda wall: wall.name or "none")
def wall(request: pytest.FixtureRequest) -> Wall:
    return request.param


def test_no_variable_of_ours_is_there(wall: Wall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCPO_SECRET", "xyzzy")
    seen = behind(wall, "env", tmp_path)
    assert seen.returncode == 0, seen.stderr
    assert "VCPO_SECRET" not in seen.stdout
    assert {line.partition("=")[0] for line in seen.stdout.splitlines()} <= {"PATH", "PWD", "_"}


def test_nothing_can_be_written(wall: Wall, tmp_path: Path) -> None:
    target = tmp_path / "new"
    behind(wall, "dd", tmp_path, "if=/dev/zero", f"of={target}", "count=1")
    assert not target.exists() or target.stat().st_size == 0


def test_there_is_no_network_behind_a_wall(wall: Wall, tmp_path: Path) -> None:
    seen = behind(wall, "cat", tmp_path, "/proc/net/dev").stdout
    cards = {line.split(":")[0].strip() for line in seen.splitlines() if ":" in line}
    assert cards <= {"lo"} or not wall.name


@pytest.mark.skipif(not BUBBLEWRAP, reason="bubblewrap is not installed; .ci/integrations tools installs it")
def test_bubblewrap_shows_nothing_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("xyzzy")
    assert behind(BUBBLEWRAP[0], "cat", tmp_path, str(tmp_path / "secret")).returncode != 0
    assert behind(BUBBLEWRAP[0], "cat", tmp_path, "/etc/passwd").returncode != 0


def test_the_strongest_wall_that_stands_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(walls, "_stands", lambda wall: asked.append(wall.name) or wall.name == "unshare")
    strongest.cache_clear()
    assert strongest().name == "unshare"
    assert asked == ["bwrap", "unshare"]
    strongest.cache_clear()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert strongest() == NONE
    strongest.cache_clear()


def test_a_wall_that_is_forbidden_does_not_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "_line", lambda wall, program: "exit 1")
    assert not walls._stands(Wall("unshare", ""))
    monkeypatch.setattr(walls, "_line", lambda wall, program: "sleep 20")
    monkeypatch.setattr(walls, "_SECONDS", 0.1)
    assert not walls._stands(Wall("unshare", ""))

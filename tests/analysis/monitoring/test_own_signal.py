"""A signal of one's own, from `new signal` to an alarm in a loop and on the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call, refused

from vcpo_bench.analysis.monitoring.signal import SIGNALS

DOCS = Path(__file__).parents[3] / "docs" / "monitor.md"
LOG = "step,reward,ppo_kl,share_clipped\n" + "".join(f"{n},0.5,0.1,0.2\n" for n in range(30))


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path / call("new", "signal", "my-signal").stdout.split()[0]
    SIGNALS.forget()


def test_the_detector_of_the_docs_raises_its_alarm(plugin: Path) -> None:
    (code,) = [block for block in DOCS.read_text().split("```python\n") if "stop_detector(" in block]
    names: dict[str, object] = {}
    exec(code.partition("```")[0], names)
    (alarm,) = names["reading"].alarms  # type: ignore[attr-defined]
    assert str(alarm).startswith("my-signal 0.1 > 0.05 at step 0")


def test_a_calibration_may_name_it_where_its_file_is_given(plugin: Path, tmp_path: Path) -> None:
    from vcpo_bench.analysis.monitoring.calibration import DEFAULTS

    ours, log = tmp_path / "own.json", tmp_path / "log.csv"
    ours.write_text(DEFAULTS.read_text().replace('"kl_length', '"my-signal'))
    log.write_text(LOG)
    flags = (log, "--map", "reward=reward,step=step", "--calibration", ours)
    assert "my-signal" in refused("diagnose", *flags)
    for verb in (("diagnose",), ("watch", "--idle", "0.1", "--every", "0.05")):
        shown = call(*verb, *flags, "--plugin", plugin)
        assert shown.exit_code in (0, 1), (shown.output, shown.exception)

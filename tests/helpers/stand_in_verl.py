"""A verl that trains nothing: it reads its command line, and leaves a log and checkpoints as verl's V1 trainer does.

The process needs nothing but the standard library, so that it starts at once.
"""

import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

DIES = "STAND_IN_DIES"
"""Step before which it is killed, unless it has gone on from a checkpoint; 0 or absent: none."""


def install(folder: Path) -> str:
    """Put it into a folder as the package that it stands for; returns a `PYTHONPATH` that has it before the others."""
    entry = folder / "verl" / "trainer" / "main_ppo.py"
    entry.parent.mkdir(parents=True)
    for package in (folder / "verl", entry.parent):
        (package / "__init__.py").touch()
    shutil.copy(__file__, entry)
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def main(arguments: list[str]) -> None:
    settings = dict(one.lstrip("+").split("=", 1) for one in arguments)
    count = {name: int(settings[f"trainer.{name}"]) for name in ("total_training_steps", "save_freq", "test_freq")}
    folder = Path(json.loads(settings["trainer.default_local_dir"]))
    resumed = json.loads(settings["trainer.resume_from_path"])
    done = int(resumed.rpartition("_")[2]) if resumed else 0
    if resumed:
        assert (Path(resumed) / "weights").read_text() == f"after {done}"
    path = re.search('VERL_FILE_LOGGER_PATH:"([^"]*)"', settings["ray_kwargs.ray_init.runtime_env.env_vars"])
    assert path
    with Path(path[1]).open("w") as log:
        if settings["trainer.val_before_train"] == "True":
            say(log, done, {"val-core/cell/acc/mean@1": 0.0})
        for step in range(done + 1, count["total_training_steps"] + 1):
            if step == int(os.environ.get(DIES, "0")) and not resumed:
                os.kill(os.getpid(), signal.SIGKILL)
            if step % count["save_freq"] == 0:
                save(folder, step)
            judged = {"val-core/cell/acc/mean@1": step / 10} if step % count["test_freq"] == 0 else {}
            say(log, step, {"critic/score/mean": step / 20, **staleness(step), **judged})
            while step < count["total_training_steps"] and (folder / f"global_step_{step}").exists():
                time.sleep(0.01)  # until it is taken over; others come while nobody looks


def save(folder: Path, step: int) -> None:
    (folder / f"global_step_{step}").mkdir(parents=True)
    (folder / f"global_step_{step}" / "weights").write_text(f"after {step}")
    (folder / "latest_checkpointed_iteration.txt").write_text(str(step))


def staleness(step: int) -> dict[str, float]:
    lag = min(step - 1, 2)
    worst = {f"training/off_policy/trajectory_staleness_worst/{name}": lag for name in ("min", "mean", "max")}
    return {**worst, "training/off_policy/trajectory_staleness/min": lag}


def say(log: object, step: int, data: dict[str, float]) -> None:
    log.write(json.dumps({"step": step, "data": data}) + "\n")  # type: ignore[attr-defined]
    log.flush()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(sys.argv[1:])

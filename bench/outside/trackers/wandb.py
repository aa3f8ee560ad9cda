"""wandb: Weights & Biases, offline or online."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpo_bench.bench.outside.trackers.catalog import Connection, Rows, TrackedRun, Tracker
from vcpo_bench.files.folders import working_at_root
from vcpo_bench.naming.parameters import choice, text

NEEDED_BYTES = 2**20
"""With less free disk space than this after mirroring a cell, some of its rows may not have been written."""


@dataclass(frozen=True, kw_only=True)
class Wandb(Tracker):
    """Weights & Biases.

    Attributes:
        mode: `offline` writes local files, which `wandb sync` uploads; `online` uploads.
        project: Its project.
    """

    name = "wandb"
    summary = "Weights & Biases, offline or online"
    package = extra = "wandb"
    mode: str = choice("offline", "online")
    project: str = text("vcpo-bench", legal="a project's name")

    @property
    def target(self) -> str:
        """Mode and project."""
        return f"{self.mode}-{self.project}"

    def connect(self, folder: Path) -> WandbConnection:
        """Import wandb, silent and, in offline mode, writing only inside the results folder."""
        kept = self.kept(folder)
        os.environ.setdefault("WANDB_SILENT", "true")
        if self.mode == "offline":
            for name in ("CACHE", "CONFIG", "DATA"):
                os.environ.setdefault(f"WANDB_{name}_DIR", str(kept / ".cache" / name.lower()))
        import wandb

        if not hasattr(wandb, "init"):
            raise ImportError("wandb is an empty folder")
        # settings, such as the server's address, are read from the user's home only, and offline from nowhere
        system = {"settings_system": os.devnull}
        settings = wandb.Settings(**system) if self.mode == "offline" else None  # pyright: ignore[reportAttributeAccessIssue]
        with working_at_root():
            wandb.setup(settings)  # pyright: ignore[reportAttributeAccessIssue]
        return WandbConnection(self, folder, wandb)


class WandbConnection(Connection):
    """wandb for one results folder."""

    def __init__(self, tracker: Wandb, folder: Path, wandb: Any) -> None:
        self._tracker, self._folder, self._wandb = tracker, folder, wandb

    def start(self, key: str, config: Mapping[str, Any]) -> TrackedRun:
        """A run whose id is the cell's key; online it goes on after its last step."""
        return _WandbRun(self._init(key, "cell", {"key": key, **config}), self._folder / "wandb")

    def report(self, name: str, page: Path) -> None:
        """A run of its own holds the page."""
        run = self._init(f"report-{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)}", "report", {})
        run.log({"report": self._wandb.Html(str(page), inject=False)})
        run.finish()

    def _init(self, name: str, kind: str, config: Mapping[str, Any]) -> Any:
        offline = self._tracker.mode == "offline"
        if offline:  # left by an earlier attempt, whose rows are all logged again
            for old in (self._folder / "wandb").glob(f"offline-run-*-{name}"):
                shutil.rmtree(old)
        quiet = self._wandb.Settings(
            console="off", silent=True, disable_git=True, disable_code=True, x_disable_stats=True, x_disable_meta=True
        )
        return self._wandb.init(
            dir=str(self._folder),
            mode=self._tracker.mode,
            project=self._tracker.project,
            group=self._folder.name,
            job_type=kind,
            id=name,
            name=name,
            config=dict(config),
            resume=None if offline else "allow",
            reinit="create_new",
            settings=quiet,
        )


class _WandbRun(TrackedRun):
    def __init__(self, run: Any, files: Path) -> None:
        self._run, self._files = run, files
        self.first = run.starting_step  # online, a resumed wandb run knows its last step

    def log(self, rows: Rows) -> None:
        for step, metrics in rows:
            self._run.log(dict(metrics), step=step)

    def finish(self, facts: Mapping[str, Any], origin: Mapping[str, Any], failed: bool) -> None:
        self._run.config.update(dict(origin), allow_val_change=True)
        self._run.summary.update(dict(facts))
        self._run.finish(exit_code=int(failed))
        if shutil.disk_usage(self._files).free < NEEDED_BYTES:  # wandb's service does not report lost writes
            raise OSError("the disk is full")

    def interrupt(self) -> None:
        self._run.finish(exit_code=1)

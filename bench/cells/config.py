"""A cell: one training run, fully described by its configuration, and the key under which its results are stored."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cached_property
from textwrap import shorten
from typing import Any, Self

from vcpo_bench.bench.cells.parts import CellParts
from vcpo_bench.naming.plugins import plugin_digests
from vcpo_bench.records import RULES_VERSION
from vcpo_bench.records.settings import SETTINGS, CellFields

NUMERIC_BACKEND = "torch-cpu-float32"
"""Default arithmetic of a cell; `dtype` and `device` are fields of their own."""


class CellConfig(CellFields):
    """Everything that changes the numbers or the records of one training run (`records.settings`).

    `method`, `task`, `regime`, `optimizer`, `policy` and `sampler` are canonical expressions. `start`,
    `model` and `plugins` hold hashes of files (`grid_spec.start_digest`, `model_source.model_identity`,
    `plugins_of`), so that an edited file makes another cell.
    """

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Self:
        """A cell as a file holds it; settings that this version does not have are left out.

        Raises:
            TypeError: A setting without a default is missing.
            UsageError: A value is not legal.
        """
        return cls(**{name: value for name, value in values.items() if name in SETTINGS})

    @cached_property
    def parts(self) -> CellParts:
        """What its expressions name, as objects."""
        return CellParts(self, self.method, self.task, self.regime, self.model)

    def __getstate__(self) -> dict[str, Any]:
        """Without `parts`: a process that is sent the cell reads them once its plug-ins are loaded."""
        return {name: value for name, value in vars(self).items() if name != "parts"}

    @property
    def label(self) -> str:
        """A readable line: `vcpo lag 16 seed 0 chain lr 3e-4`, with regime and optimizer that are not the default."""
        usual = self.regime == CellFields.regime
        regime = "" if usual else f"{shorten(self.regime, 40, placeholder='...')} "
        forked = f" forked at {self.fork_step}" if self.parent else ""
        model = f" {self.model.partition('@')[0]}" if self.model else ""
        lr = short_number(self.lr)
        policy = "" if self.policy == CellFields.policy else f" {self.policy}"
        lr += "" if self.optimizer == CellFields.optimizer else f" {self.optimizer}"
        return f"{self.method} {regime}lag {self.staleness} seed {self.seed} {self.task}{model}{policy} lr {lr}{forked}"

    def key(self, method_version: int) -> str:
        """Name of the cell's folder: a readable slug, and ten hex digits of the hash of everything that defines it.

        Only fields that differ from their defaults are hashed, so that a new field with a default changes no key.
        """
        defining: dict[str, Any] = {
            "config": self.changed(),
            "method_version": method_version,
            "rules_version": RULES_VERSION,
            "backend": NUMERIC_BACKEND,
        }
        digest = hashlib.sha256(json.dumps(defining, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        method = re.sub(r"[^a-z0-9.+-]+", "_", self.method.lower()).strip("_")[:40]
        task = re.sub(r"[^a-z0-9.-]+", "_", self.task.lower()).strip("_")[:20]
        lag = re.sub(r"[^a-z0-9.-]+", "_", self.regime).strip("_")[:24] + str(self.staleness)
        forked = f"-fork{self.fork_step}" if self.parent else ""
        return f"{task}-{method}-{lag}-lr{short_number(self.lr)}-seed{self.seed}{forked}-{digest[:10]}"


def short_number(value: float) -> str:
    """`3e-4` for 0.0003: the shortest text that reads back as the same number, without padded exponents."""
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    plain = re.sub(r"e([+-])0*(\d+)$", lambda m: f"e{'-' if m[1] == '-' else ''}{m[2]}", text)
    if "e" not in plain and 0 < abs(value) < 1e-2:
        mantissa, exponent = f"{value:.15e}".split("e")
        plain = f"{float(mantissa):g}e{int(exponent)}"
    return plain if float(plain) == value else repr(value)


def plugins_of(config: CellConfig) -> str:
    """The value of `CellConfig.plugins` under the code that is loaded now.

    Raises:
        UsageError: The method, task, regime, optimizer, policy, sampler or trainer is unknown: its plug-in is not
            loaded.
    """
    parts = config.parts
    others = (parts.task, parts.regime, parts.optimizer, parts.policy, parts.sampler, parts.trainer)
    return plugin_digests(parts.method.plugins, *(part.source for part in others))

"""Writes the first version of a method of one's own (`vcpo-bench new method NAME`)."""

import re
from pathlib import Path

from vcpo_bench.methods.core.errors import PluginError

_METHOD = '''"""{title}: say here what it stabilizes."""

from dataclasses import dataclass
from typing import ClassVar

from vcpo_bench.methods import Evidence, RatioMethod, Terms
from vcpo_bench.naming.parameters import number


@dataclass(frozen=True, kw_only=True)
class {cls}(RatioMethod):
    """c = A min(r, cap), r the token ratio current/behavior."""

    name: ClassVar[str] = "{name}"
    summary: ClassVar[str] = "token ratio capped at 2"
    formula: ClassVar[str] = "c = A min(r, cap)"
    cap: float = number(2.0, minimum=0)

    def terms(self, ev: Evidence) -> Terms:
        """The weight of every token, [..., P, G, T]."""
        return Terms(weight=ev.ratio("current", self.anchor, self.clamp).clamp(max=self.cap))
'''

_TEST = '''"""{title} does what its formula says."""

from pathlib import Path

import torch

from vcpo_bench.methods import Batch, load_plugin, parse_method

load_plugin(Path(__file__).with_name("{module}.py"))


def test_the_weight_is_capped() -> None:
    logp = torch.tensor([[[0.0, 1.0]]])
    batch = Batch(
        logp=logp,
        behavior_logp=torch.zeros_like(logp),
        mask=torch.ones(1, 1, 2, dtype=torch.bool),
        valid=torch.ones(1, 1, dtype=torch.bool),
        reward=torch.ones(1, 1),
        advantage=torch.ones_like(logp),
        version=torch.zeros(1, 1, 2, dtype=torch.int64),
        now=0,
    )
    update = parse_method("{name}")(batch)
    assert torch.allclose(update.coefficients, torch.tensor([[[0.5, 1.0]]]))  # 1/2 each, times 1 and min(e, 2)
'''


def new_method(name: str, folder: str | Path) -> list[Path]:
    """Write a working method and its test.

    Args:
        name: Name in expressions: lower-case words joined by hyphens.
        folder: Where to write; created when missing.

    Returns:
        The two files, `NAME.py` and `test_NAME.py` (hyphens become underscores).

    Raises:
        PluginError: For a name that is not legal or a file that exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise PluginError(f"{name!r} is not a method name; use lower-case words joined by hyphens, such as my-method")
    module = name.replace("-", "_")
    words = {
        "name": name,
        "module": module,
        "title": name.replace("-", " ").capitalize(),
        "cls": "".join(part.capitalize() for part in name.split("-")),
    }
    place = Path(folder)
    files = [place / f"{module}.py", place / f"test_{module}.py"]
    taken = [file for file in files if file.exists()]
    if taken:
        raise PluginError(f"{taken[0]} exists; choose another name or folder")
    place.mkdir(parents=True, exist_ok=True)
    for file, text in zip(files, (_METHOD, _TEST), strict=True):
        file.write_text(text.format(**words))
    return files

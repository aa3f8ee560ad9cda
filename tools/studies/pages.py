"""The pages that are made of tables, and when a study was registered."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml

from vcpo_bench.analysis.advice import advise
from vcpo_bench.analysis.intervals import holm
from vcpo_bench.reports.terminal.advice import advice_text

from . import boundaries, estimates, formats, ranking

Names = dict[str, Callable[..., Any]]
ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "studies"
PAGE, DESIGN, TABLES = "page.md.j2", "design.yaml", "tables"
REGISTERED = ("preset", "questions", "primary", "margin", "power", "stop")
"""What a design says before its first run."""


def pages() -> dict[str, Callable[[], str]]:
    """What makes each page, by its path from the root: README.md, pages of docs/, and docs/studies/NAME/README.md."""
    own = {f"docs/studies/{template.parent.name}/README.md": template for template in STUDIES.glob(f"*/{PAGE}")}
    others = {template.stem: template for template in STUDIES.glob("*.md.j2")}
    whole = own | {name if name == "README.md" else f"docs/{name}": template for name, template in others.items()}
    return {page: partial(rendered, template) for page, template in sorted(whole.items())}


def rendered(template: Path) -> str:
    """The page of a template.

    In a template `table(PATH, ...)` is the tables of these paths below one another, and `design` what the study beside
    it registered. Names are those of `estimates`, `boundaries`, `ranking` and `formats`, the last ones as filters.

    Raises:
        jinja2.UndefinedError: The template asks for what there is not.
    """
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown of our own tables
    )
    shown = (formats.fixed, formats.end, formats.percent, formats.factor, formats.rate, formats.small, estimates.word)
    environment.filters.update({one.__name__: one for one in shown})
    environment.globals.update(_functions())
    design = template.with_name(DESIGN)
    return environment.from_string(template.read_text()).render(
        table=lambda *paths: _table(template.parent, *paths), design=_design(design) if design.exists() else {}
    )


def _functions() -> Names:
    return {
        "select": select,
        "mean": estimates.mean,
        "difference": estimates.difference,
        "over_seeds": estimates.over_seeds,
        "boundaries": boundaries.boundaries,
        "last_survivors": boundaries.last_survivors,
        "largest_rate": boundaries.rate,
        "exponent": boundaries.exponent,
        "tolerance": boundaries.tolerance,
        "lowest_earns_most": boundaries.lowest_earns_most,
        "share_of_gain": boundaries.share_of_gain,
        "share_of_best": boundaries.share_of_best,
        "auroc": ranking.auroc,
        "holm": holm,
        "advice": lambda lag: advice_text(advise(lag), can_tune=False).splitlines()[:4],
    }


def _table(folder: Path, *paths: str) -> pd.DataFrame:
    """Tables below one another: of the study's own `tables`, or as a path from the root: `docs/studies/NAME/FILE`."""
    own = [ROOT / path if path.startswith(("docs/", "studies/")) else folder / TABLES / path for path in paths]
    return pd.concat([pd.read_csv(path) for path in own], ignore_index=True)


def select(table: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """The rows whose columns have these values; a list is any of its values."""
    for name, values in wanted.items():
        table = table[table[name].isin(values if isinstance(values, list) else [values])]
    return table


def _design(path: Path) -> dict[str, Any]:
    """What a study registered.

    Raises:
        ValueError: It leaves something out.
    """
    said: dict[str, Any] = yaml.safe_load(path.read_text())
    if missing := [name for name in REGISTERED if name not in said]:
        raise ValueError(f"{path} does not say: {', '.join(missing)}")
    return said


def registrations() -> Iterator[tuple[str, bool]]:
    """Per study that has tables: whether its design is the one that stood before the first commit of any table."""
    for design in sorted(STUDIES.glob(f"*/{DESIGN}")):
        tables = _git("log", "--reverse", "--format=%H", "--", str(design.with_name(TABLES)))
        if tables:
            parent = _git("rev-list", "--parents", "-1", tables[0])[1:2]
            before = parent and _git("log", "-1", "--format=%H", *parent, "--", str(design))
            changed = before and _git("diff", "--name-only", before[0], "HEAD", "--", str(design))
            yield design.parent.name, bool(before) and not changed


def _git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

"""The folders verbs use when none is named."""

from pathlib import Path

DEFAULT_OUT = Path("results/default")

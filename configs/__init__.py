"""Presets: YAML files whose keys are the long flags of `vcpo-bench run`."""

from pathlib import Path

PRESETS = Path(__file__).parent

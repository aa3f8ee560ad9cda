"""vcpo-bench: which stabilizer survives at your policy lag, why a run collapsed, and whether you could have known."""

__version__ = "0.1.0"

"""Presets: one YAML file per experiment, found by name."""

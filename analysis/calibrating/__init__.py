"""Calibrates the monitor's detectors on runs whose fate is known: all of them together, and each part."""

"""Signals, detectors and the online monitor that raises alarms."""

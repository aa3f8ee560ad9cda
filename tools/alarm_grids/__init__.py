"""Alarms on a grid that tuned none of them: docs/studies/calibration/registration-3.md."""

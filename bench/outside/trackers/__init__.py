"""Trackers that results can be mirrored to: one file each."""

"""Cells: configuration and key, grids of them, their results folder, and the task, policy and sampler they open."""

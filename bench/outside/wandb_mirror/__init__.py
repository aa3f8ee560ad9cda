"""Mirrors a results folder to wandb, in a process of its own that no run waits for. Parquet stays the truth."""

"""Mirrors a results folder to wandb, in a process of its own for which no run waits."""

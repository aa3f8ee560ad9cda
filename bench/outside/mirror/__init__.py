"""Mirrors a results folder to a tracker (wandb, TensorBoard ...), in a process of its own for which no run waits."""

"""Bridges to outside tools: lm-eval and wandb."""

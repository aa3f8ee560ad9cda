"""Bridges to outside tools: lm-eval and trackers such as wandb."""

"""The built-in mixture of experts: a small Qwen3-MoE transformer, its sampling, scoring and warm starts."""

"""The built-in tiny policy: a two-layer transformer, its sampling, scoring and warm starts."""

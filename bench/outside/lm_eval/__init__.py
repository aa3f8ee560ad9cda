"""Scores kept checkpoints with lm-eval, which the extra `[eval]` installs; imported only when that is asked for."""

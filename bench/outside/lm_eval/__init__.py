"""Scores kept checkpoints with lm-eval (extra `eval`), which is imported only by `vcpo-bench lab eval`."""

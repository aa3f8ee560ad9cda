"""Running recorded cells again: exact replays, forks with other methods, and the estimator probe."""

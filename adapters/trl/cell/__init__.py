"""A cell inside TRL: the same prompts, rewards, evaluations and tables as in the loop of this project."""

"""When runs collapse: the rule, survival, and which learning rates are stable."""

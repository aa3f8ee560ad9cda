"""Which method is better at which lag: best learning rates, aggregates, pairs, ablations, time to target."""

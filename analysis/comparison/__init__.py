"""Which method is better at which lag: best rates, aggregates, pairs, ablations, time to target."""

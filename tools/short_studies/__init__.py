"""Studies of short runs: step rules, cures at the sampler and in the loss, and every method at three rates."""

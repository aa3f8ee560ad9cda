"""Studies of short runs: step rules, fixes at the sampler against corrections in the loss, every method."""

"""The parts of a stabilizer that have names in the literature."""

"""One file per format: each turns a file into rows of (step, name, value)."""

"""One file per study; each holds a `STUDY`."""

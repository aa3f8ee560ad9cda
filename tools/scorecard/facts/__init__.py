"""One file per published fact; each defines `FACT`."""

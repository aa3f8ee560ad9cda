"""One file per component of the mismatch."""

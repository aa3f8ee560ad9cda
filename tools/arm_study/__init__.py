"""What studies of arms share: runs, tables paired by seed, and pages."""

"""The parts methods are assembled from: one file per part, called what a user types."""

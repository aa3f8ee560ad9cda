"""Judges recorded tables: ESS, tails, collapse, prediction. No torch."""

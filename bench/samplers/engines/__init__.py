"""Engines: what draws responses while a cell runs; the weights they draw under, and turns with an environment."""

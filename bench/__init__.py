"""Trains: cells, staleness, samplers, learner."""

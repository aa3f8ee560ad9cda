"""Carrying out a regime: batches are sampled, queued and handed to the learner with their versions."""

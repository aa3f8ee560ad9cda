"""Carrying out a regime: batches are sampled, queued, and handed to the learner with the versions of their tokens."""

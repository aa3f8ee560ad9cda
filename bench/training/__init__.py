"""Training of one cell: learner, trainer, recorded steps, evaluation, supervised warm-up."""

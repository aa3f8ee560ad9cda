"""One optimizer update after another: learner, diagnostics, recorder, evaluation, imitation."""

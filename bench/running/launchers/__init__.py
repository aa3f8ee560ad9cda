"""Where cells run: one file per launcher."""
